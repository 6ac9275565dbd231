import type { KeyObject } from 'node:crypto'
import { type AuditAction, type Id, uuidFromId } from '@workspace-wallet/contract'
import type { Em } from '../database/orm.ts'
import { runIn } from '../database/run.ts'
import { type Action, appendActions, lockAudit } from './chain.ts'

export type AuditedAction = {
  actor: string
  action: AuditAction
  workspaceId: Id<'workspace'> | null
  /** The ID of the object of the action. */
  target: string
  before?: unknown
  after?: unknown
}

/** What all actions of a transaction have in common. */
export type Circumstances = Pick<Action, 'reason' | 'requestId'>

/** The actions that each transaction has not written yet. */
const pending = new WeakMap<Em, Omit<Action, keyof Circumstances>[]>()

/** Writes an action to the audit at the end of the transaction. `before` and `after` must not contain secrets. */
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

/**
 * Writes the recorded actions, once. Call it last in a transaction: its lock must be the last one (see lockAudit).
 *
 * @returns the last one; null without any
 */
export async function writeActions(em: Em, chainKey: KeyObject, circumstances: Circumstances) {
  const actions = pending.get(em)
  if (!actions) return null
  pending.delete(em)
  const run = runIn(em)
  const heads = await lockAudit(run, [...new Set(actions.map(({ workspaceId }) => workspaceId))])
  const complete = actions.map(action => ({ ...action, ...circumstances }))
  return appendActions(run, chainKey, heads, complete)
}
