import type { KeyObject } from 'node:crypto'
import { DomainError, type Uuid } from '@workspace-wallet/contract'
import type { Run } from '../database/run.ts'
import { bytesText, plainArray, statement } from '../database/statement.ts'
import { type AuditRow, auditMac, storedAuditColumns } from '../database/tables/audit.ts'
import { bytes } from '../database/tables/columns.ts'
import { byColumn, columnNames, type FoundRow, rowFrom, selectColumns } from '../database/tables/table.ts'

/**
 * An action in the audit. Each workspace has its own chain, as do the actions on no workspace: an action has the next
 * position, and a MAC over itself and the MAC of the action before it. The service can only append (see migrations).
 */
export type Action = Omit<AuditRow, 'position' | 'at'>

/** The last action of a chain, locked until the transaction ends, and the time of PostgreSQL in milliseconds. */
export type AuditHead = { workspaceId: Uuid<'workspace'>; position: number; mac: Buffer; nowMs: number }

/** An action may have half a megabyte, if somebody else wrote it: so few are read at a time that they fill no memory. */
export const auditRowsPerFetch = 50

/** The MAC before the first action. */
export const emptyAuditMac = Buffer.alloc(0)

/** The head of the actions on no workspace has this ID. */
const noWorkspace = '00000000-0000-0000-0000-000000000000' as Uuid<'workspace'>

/**
 * SQL: the stored action `a`, and the MAC of the action before it. `readAction` reads it.
 *
 * @param audit the name of the table of audit entries
 */
export const selectActionOf = (audit: string) =>
  `${selectColumns(storedAuditColumns, 'a')}, ${bytes.read(`
  case when a.workspace_id is null
    then (select p.mac from ${audit} p where p.workspace_id is null and p.position = a.position - 1 limit 1)
    else (select p.mac from ${audit} p where p.workspace_id = a.workspace_id and p.position = a.position - 1 limit 1)
  end`)} as previous`
export const selectAction = selectActionOf('audit')
export type FoundAction = FoundRow<typeof storedAuditColumns> & { previous: unknown }

/** A stored action, and whether its MAC matches its content and the action before it. */
export function readAction(key: KeyObject, found: FoundAction): { action: AuditRow; isGenuine: boolean } {
  const { mac, ...action } = rowFrom(storedAuditColumns, found)
  return { action, isGenuine: auditMac(key, action, bytes.parse(found.previous)).equals(mac) }
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

const { before, after, ...plainColumns } = columnNames(storedAuditColumns)
/** JSON text is sent as a string, because the MAC covers it as it was written. */
const appendActionsStatement = statement(
  'append-actions',
  `insert into audit (${[...Object.values(plainColumns), before, after].join(', ')})
   select ${Object.values(plainColumns).join(', ')}, (${before} #>> '{}')::json, (${after} #>> '{}')::json
   from json_populate_recordset(null::audit, $1::json) with ordinality
   order by ordinality`,
)

/**
 * Appends actions in this order to the heads that `lockAudit` returned in the same transaction.
 *
 * @returns the place of the last one
 * @throws DomainError S002 if the workspace of an action moves to another place
 */
export async function appendActions(
  run: Run,
  key: KeyObject,
  locked: AuditHead[],
  actions: readonly Action[],
): Promise<Pick<AuditRow, 'workspaceId' | 'position'> & { mac: Buffer }> {
  const heads = new Map(locked.map(head => [head.workspaceId, head]))
  const rows = actions.map(action => {
    const head = heads.get(action.workspaceId ?? noWorkspace)
    if (!head) throw new DomainError('S002', { retryAfterSeconds: 1 })
    const row = { ...action, at: new Date(head.nowMs), position: head.position + 1 }
    const mac = auditMac(key, row, head.mac)
    heads.set(head.workspaceId, { ...head, position: row.position, mac })
    return { ...row, mac }
  })
  const stored = rows.map(row => ({ ...byColumn(storedAuditColumns, row), mac: bytesText(row.mac) }))
  await run(appendActionsStatement, [JSON.stringify(stored)])
  const { workspaceId, position, mac } = rows.at(-1)!
  return { workspaceId, position, mac }
}
