import { createHmac, type KeyObject } from 'node:crypto'
import type { AuditAction } from '@workspace-wallet/contract'
import { bytesArray, plainArray, type Statement, statement, textArray } from '../../database/statement.ts'

/**
 * The audit is a chain for each workspace, and one for the actions on none: an action has the next position, and a MAC over
 * itself and the MAC of the action before it. PostgreSQL lets the service append and nothing else (see migrations).
 */
export type Action = {
  actor: string
  action: AuditAction
  /** A UUID; null for an action on no workspace. */
  workspaceId: string | null
  /** The id of what was acted on. */
  target: string
  /** JSON. */
  before: string | null
  after: string | null
}

export type AuditRow = Action & { at: Date; position: number }

/** The last action of a workspace, locked until the transaction ends, and PostgreSQL's time in milliseconds. */
export type AuditHead = { workspaceId: string; position: number; mac: Buffer; nowMs: number }

/** Before the first action. */
export const emptyAuditMac = Buffer.alloc(0)

/** What stands for no workspace among the heads. */
const noWorkspace = '00000000-0000-0000-0000-000000000000'

/** The content begins with a word, as that of rows does (see db/signed-rows.ts). */
export function auditMac(key: KeyObject, row: AuditRow, previous: Buffer): Buffer {
  const { workspaceId, position, at, actor, action, target, before, after } = row
  const content = [workspaceId, position, at.getTime(), actor, action, target, before, after, previous.toString('hex')]
  return createHmac('sha256', key)
    .update(JSON.stringify(['audit row', ...content]))
    .digest()
}

/** Runs a statement, of which each value stands in the text once and in order. */
type Run = <Row>(statement: Statement<Row>, values: unknown[]) => Promise<Row[]>

const lockAuditStatement = statement<{ workspaceId: string; position: string; mac: Buffer; nowMs: string }>(
  'lock-audit',
  `select workspace_id as "workspaceId", position::text, mac, (extract(epoch from now) * 1000)::bigint::text as "nowMs"
   from lock_audit($1::uuid[])`,
)

/**
 * Locks the audits of these workspaces. A transaction takes this lock once, after the locks of ledgers and of the
 * access revision, so that two never wait for each other.
 */
export async function lockAudit(run: Run, workspaceIds: readonly (string | null)[]): Promise<AuditHead[]> {
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
  `insert into audit (at, actor, action, workspace_id, target, before, after, position, mac)
   select at, actor, action, workspace_id, target, before::json, after::json, position, mac
   from unnest($1::timestamptz[], $2::text[], $3::text[], $4::uuid[], $5::text[], $6::text[], $7::text[], $8::bigint[],
       $9::bytea[])
     with ordinality as actions (at, actor, action, workspace_id, target, before, after, position, mac, place)
   order by place`,
)

/** Appends actions, in this order, behind the heads that `lockAudit` returned in the same transaction. */
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
    plainArray(rows.map(row => row.position)),
    bytesArray(rows.map(row => row.mac)),
  ])
}
