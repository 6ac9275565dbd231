import { createHmac, type KeyObject } from 'node:crypto'
import type { AuditAction, Uuid } from '@workspace-wallet/contract'
import type { Run } from '../database/run.ts'
import { bytesArray, plainArray, statement, textArray } from '../database/statement.ts'

/**
 * An action in the audit. Each workspace has its own chain, as do the actions on no workspace: an action has the next
 * position, and a MAC over itself and the MAC of the action before it. The service can only append (see migrations).
 */
export type Action = {
  actor: string
  action: AuditAction
  /** Null for an action on no workspace. */
  workspaceId: Uuid<'workspace'> | null
  /** The ID of the object of the action. */
  target: string
  /** JSON. */
  before: string | null
  after: string | null
  /** Why, if the actor has said so. */
  reason: string | null
  /** The call that did it; null for what core does by itself. */
  requestId: string | null
}

export type AuditRow = Action & { at: Date; position: number }

/** The last action of a chain, locked until the transaction ends, and the time of PostgreSQL in milliseconds. */
export type AuditHead = { workspaceId: Uuid<'workspace'>; position: number; mac: Buffer; nowMs: number }

/** The MAC before the first action. */
export const emptyAuditMac = Buffer.alloc(0)

/** The head of the actions on no workspace has this ID. */
const noWorkspace = '00000000-0000-0000-0000-000000000000' as Uuid<'workspace'>

/** The content begins with a word, like that of signed rows (see database/tables/table.ts). */
export function auditMac(key: KeyObject, row: AuditRow, previous: Buffer): Buffer {
  const { workspaceId, position, at, actor, action, target, before, after, reason, requestId } = row
  const what = [actor, action, target, before, after, reason, requestId]
  const content = [workspaceId, position, at.getTime(), ...what, previous.toString('hex')]
  return createHmac('sha256', key)
    .update(JSON.stringify(['audit row', ...content]))
    .digest()
}

const lockAuditStatement = statement<{ workspaceId: Uuid<'workspace'>; position: string; mac: Buffer; nowMs: string }>(
  'lock-audit',
  `select workspace_id as "workspaceId", position::text, mac, (extract(epoch from now) * 1000)::bigint::text as "nowMs"
   from lock_audit($1::uuid[])`,
)

/**
 * Locks the audits of these workspaces. To avoid deadlocks, a transaction takes this lock once, after its locks on ledgers
 * and on the access revision.
 */
export async function lockAudit(run: Run, workspaceIds: readonly (Uuid<'workspace'> | null)[]): Promise<AuditHead[]> {
  const rows = await run(lockAuditStatement, [plainArray(workspaceIds.map(id => id ?? noWorkspace))])
  return rows.map(({ workspaceId, position, mac, nowMs }) => ({
    workspaceId,
    position: Number(position),
    mac,
    nowMs: Number(nowMs),
  }))
}

const appendActionsStatement = statement(
  'append-actions',
  `insert into audit (at, actor, action, workspace_id, target, before, after, reason, request_id, position, mac)
   select at, actor, action, workspace_id, target, before::json, after::json, reason, request_id, position, mac
   from unnest($1::timestamptz[], $2::text[], $3::text[], $4::uuid[], $5::text[], $6::text[], $7::text[], $8::text[],
       $9::text[], $10::bigint[], $11::bytea[])
     with ordinality
     as actions (at, actor, action, workspace_id, target, before, after, reason, request_id, position, mac, place)
   order by place`,
)

/** Appends actions in this order to the heads that `lockAudit` returned in the same transaction. */
export function appendActions(
  run: Run,
  key: KeyObject,
  locked: AuditHead[],
  actions: readonly Action[],
): Promise<unknown> {
  const heads = new Map(locked.map(head => [head.workspaceId, head]))
  const rows = actions.map(action => {
    const head = heads.get(action.workspaceId ?? noWorkspace)!
    const row = { ...action, at: new Date(head.nowMs), position: head.position + 1 }
    const mac = auditMac(key, row, head.mac)
    heads.set(head.workspaceId, { ...head, position: row.position, mac })
    return { ...row, mac }
  })
  return run(appendActionsStatement, [
    plainArray(rows.map(row => row.at.toISOString())),
    textArray(rows.map(row => row.actor)),
    textArray(rows.map(row => row.action)),
    plainArray(rows.map(row => row.workspaceId)),
    textArray(rows.map(row => row.target)),
    textArray(rows.map(row => row.before)),
    textArray(rows.map(row => row.after)),
    textArray(rows.map(row => row.reason)),
    textArray(rows.map(row => row.requestId)),
    plainArray(rows.map(row => row.position)),
    bytesArray(rows.map(row => row.mac)),
  ])
}
