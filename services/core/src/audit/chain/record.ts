import type { KeyObject } from 'node:crypto'
import { type AuditAct, uuidFromId } from '@workspace-wallet/contract'
import type { Em } from '../../database/orm.ts'
import type { Statement } from '../../database/statement.ts'
import { type Act, appendActs, lockAudit } from './chain.ts'

export type AuditedAct = {
  actor: string
  act: AuditAct
  workspaceId: string | null
  /** The id of what was acted on. */
  target: string
  before?: unknown
  after?: unknown
}

/** What each transaction has yet to write. */
const pending = new WeakMap<Em, Act[]>()

/** Writes an act into the audit when the transaction that does it ends. Never give it a secret. */
export function recordAct(em: Em, { workspaceId, before, after, ...act }: AuditedAct): void {
  const acts = pending.get(em) ?? []
  acts.push({
    ...act,
    workspaceId: workspaceId && uuidFromId('workspace', workspaceId),
    before: before === undefined ? null : JSON.stringify(before),
    after: after === undefined ? null : JSON.stringify(after),
  })
  pending.set(em, acts)
}

/** Writes what `recordAct` noted. The last thing that a transaction does, so that its lock is the last one it takes. */
export async function writeActs(em: Em, chainKey: KeyObject): Promise<void> {
  const acts = pending.get(em)
  if (!acts) return
  const run = <Row>({ text }: Statement<Row>, values: unknown[]) =>
    em.execute(text.replaceAll(/\$\d+/g, '?'), values) as Promise<Row[]>
  const heads = await lockAudit(run, [...new Set(acts.map(({ workspaceId }) => workspaceId))])
  await appendActs(run, chainKey, heads, acts)
}
