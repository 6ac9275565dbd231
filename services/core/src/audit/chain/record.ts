import type { KeyObject } from 'node:crypto'
import { type AuditAction, uuidFromId } from '@workspace-wallet/contract'
import type { Em } from '../../database/orm.ts'
import type { Statement } from '../../database/statement.ts'
import { type Action, appendActions, lockAudit } from './chain.ts'

export type AuditedAction = {
  actor: string
  action: AuditAction
  workspaceId: string | null
  /** The id of what was acted on. */
  target: string
  before?: unknown
  after?: unknown
}

/** What each transaction has yet to write. */
const pending = new WeakMap<Em, Action[]>()

/** Writes an action into the audit when the transaction that does it ends. Never give it a secret. */
export function recordAction(em: Em, { workspaceId, before, after, ...action }: AuditedAction): void {
  const actions = pending.get(em) ?? []
  actions.push({
    ...action,
    workspaceId: workspaceId && uuidFromId('workspace', workspaceId),
    before: before === undefined ? null : JSON.stringify(before),
    after: after === undefined ? null : JSON.stringify(after),
  })
  pending.set(em, actions)
}

/** Writes what `recordAction` noted. The last thing that a transaction does, so that its lock is the last one it takes. */
export async function writeActions(em: Em, chainKey: KeyObject): Promise<void> {
  const actions = pending.get(em)
  if (!actions) return
  const run = <Row>({ text }: Statement<Row>, values: unknown[]) =>
    em.execute(text.replaceAll(/\$\d+/g, '?'), values) as Promise<Row[]>
  const heads = await lockAudit(run, [...new Set(actions.map(({ workspaceId }) => workspaceId))])
  await appendActions(run, chainKey, heads, actions)
}
