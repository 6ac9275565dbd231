import type { KeyObject } from 'node:crypto'
import { type AuditAction, idFromUuid } from '@workspace-wallet/contract'
import { plainArray, type Queryable, run, type Statement, statement } from '../database/statement.ts'
import { type AuditRow, storedAuditColumns } from '../database/tables/audit.ts'
import { columnNames } from '../database/tables/table.ts'
import { auditRowsPerFetch, type FoundAction, readAction, selectAction } from './chain.ts'

/** An action, its number in the audit, and whether its MAC matches its content and the action before it: if not, no change is shown. */
export type CheckedAction = Omit<AuditRow, 'workspaceId' | 'before' | 'after'> & {
  id: number
  workspaceId: string | null
  before: unknown
  after: unknown
  isGenuine: boolean
}

type FoundRecord = FoundAction & { id: number }

/**
 * Checks actions: the role of the service can append to the audit, but not with a valid MAC. JSON that the service has not written is
 * not parsed: it may be too deep for what reads it, and a few kilobytes of it can take megabytes.
 */
function checked(chainKey: KeyObject, rows: readonly FoundRecord[]): CheckedAction[] {
  return rows.map(({ id, ...found }) => {
    const { action, isGenuine } = readAction(chainKey, found)
    const workspaceId = action.workspaceId && idFromUuid('workspace', action.workspaceId)
    const parse = (json: string | null) => (isGenuine && json !== null ? JSON.parse(json) : null)
    return { ...action, id, workspaceId, before: parse(action.before), after: parse(action.after), isGenuine }
  })
}

const findByIdStatement = statement<FoundRecord>(
  'find-actions',
  `select a.id, ${selectAction} from audit a where a.id = any ($1::bigint[]) order by a.id desc`,
)

/** The actions with these numbers, checked, in descending order. */
export async function findActions(
  db: Queryable,
  chainKey: KeyObject,
  ids: readonly number[],
): Promise<CheckedAction[]> {
  const actions: CheckedAction[] = []
  for (let at = 0; at < ids.length; at += auditRowsPerFetch) {
    const some = plainArray(ids.slice(at, at + auditRowsPerFetch))
    actions.push(...checked(chainKey, await run(db, findByIdStatement, [some])))
  }
  return actions
}

/** The kinds of actions that have an index, and so can be found among millions of others: see database/migrations/initial/audit.ts. */
const listedActions = [
  'ledger.verify',
  'ledger.verify-incremental',
  'ledger.checkpoint',
] as const satisfies readonly AuditAction[]
const recordedActions = [...listedActions, 'system.backup'] as const satisfies readonly AuditAction[]
export type ListedAction = (typeof listedActions)[number]
export type RecordedAction = (typeof recordedActions)[number]

/** No record is longer. */
const longestRecord = 16_384

/** Of longer JSON, only the beginning, so that its MAC is not valid. */
const { before, after, ...plainColumns } = columnNames(storedAuditColumns)
const recordColumns = [
  ...Object.values(plainColumns),
  ...[before, after].map(name => `left(${name}::text, ${longestRecord}) as ${name}`),
]

// The conditions on action and workspace are constants, by which PostgreSQL recognizes the index.
function findStatementsOf<Action extends RecordedAction>(name: string, also: string, actions: readonly Action[]) {
  const find = (action: Action) =>
    statement<FoundRecord>(
      `${name}-${action}`,
      `select a.id, ${selectAction}
       from (
         select id, ${recordColumns.join(', ')} from audit
         where action = '${action}'${also} and id < $1
         order by id desc limit $2) a
       order by a.id desc`,
    )
  return Object.fromEntries(actions.map(action => [action, find(action)])) as Record<Action, Statement<FoundRecord>>
}
const ofAnyWorkspace = findStatementsOf('find-actions', '', listedActions)
const ofNoWorkspace = findStatementsOf('find-actions-of-no-workspace', ' and workspace_id is null', recordedActions)

type Page = { before?: number | undefined; limit: number }

/**
 * The newest actions of these kinds, checked.
 *
 * @param before the number of an action; only earlier ones
 */
export function findCheckedActions(
  db: Queryable,
  chainKey: KeyObject,
  actions: readonly ListedAction[],
  page: Page,
): Promise<CheckedAction[]> {
  return findWith(
    db,
    chainKey,
    actions.map(action => ofAnyWorkspace[action]),
    page,
  )
}

/** The newest actions of these kinds on all workspaces, checked. No number of actions on single workspaces hides them. */
export function findActionsOfNoWorkspace(
  db: Queryable,
  chainKey: KeyObject,
  actions: readonly RecordedAction[],
  page: Page,
): Promise<CheckedAction[]> {
  return findWith(
    db,
    chainKey,
    actions.map(action => ofNoWorkspace[action]),
    page,
  )
}

async function findWith(
  db: Queryable,
  chainKey: KeyObject,
  statements: readonly Statement<FoundRecord>[],
  { before = Number.MAX_SAFE_INTEGER, limit }: Page,
): Promise<CheckedAction[]> {
  const found: FoundRecord[] = []
  for (const each of statements) found.push(...(await run(db, each, [before, limit])))
  return checked(chainKey, found.sort((a, b) => b.id - a.id).slice(0, limit))
}
