import { Decimal, type Hold, type HoldFilter, type Page, uuidFromId } from '@workspace-wallet/contract'
import { batched } from '../database/batched.ts'
import { textBeginsWith, Values } from '../database/lists/conditions.ts'
import type { List, ListRequest, Sequence } from '../database/lists/list.ts'
import type { ListDatabase } from '../database/lists/list-reader.ts'
import { readPage } from '../database/lists/page.ts'
import { run, statement } from '../database/statement.ts'
import { storedHoldColumns } from '../database/tables/hold.ts'
import { type FoundRow as Found, rowFrom, selectColumns } from '../database/tables/table.ts'
import { nameOf } from '../ledger/decide/commands.ts'
import type { NameKey } from '../ledger/decide/requests.ts'
import { type FoundHold, namesAsArrays, rowBy } from '../ledger/store/queries.ts'
import { type CheckedReads, requireSignedHold } from '../ledger/store/require-signed.ts'
import { readSettled, type SettledReads } from './due-holds.ts'
import { type ShownHold, shownHoldColumns, toHold } from './operations.ts'

/**
 * Whether a hold is stored as OPEN and has expired. Reads do not depend on when that is written: they compare with
 * PostgreSQL's clock, which is the same in all of a statement.
 */
const isDue = `h.status = 'OPEN' and h.expires_at <= statement_timestamp()`
const status = `case when ${isDue} then 'EXPIRED' else h.status end`
const updatedAt = `case when ${isDue} then h.expires_at else h.updated_at end`

/** A hold as it is now. */
type HoldNow = ShownHold & { isDue: boolean }

function asOfNow(hold: ShownHold, isDue: boolean): HoldNow {
  const expired = { status: 'EXPIRED' as const, remaining: new Decimal(0), updatedAt: hold.expiresAt }
  return { ...hold, ...(isDue && expired), isDue }
}

const findHoldsStatement = statement<FoundHold & { key: string; isDue: boolean }>(
  'find-current-holds',
  `select asked.workspace_id || coalesce(asked.id::text, '/' || asked.biz_id) as key, ${selectColumns(storedHoldColumns, 'h')}, ${isDue} as "isDue"
   from unnest($1::uuid[], $2::uuid[], $3::text[]) as asked (workspace_id, id, biz_id)
   cross join lateral (
     ${rowBy('id', 'hold')} union all ${rowBy('biz_id', 'hold')}) h`,
)

const readHold = batched({
  readMany: ({ reads }: CheckedReads, keys: readonly NameKey<'hold'>[]) =>
    run(reads, findHoldsStatement, namesAsArrays(keys)),
  nameOf: {
    key: ({ workspaceId, name }) => workspaceId + ('id' in name ? name.id : `/${name.bizId}`),
    row: ({ key }) => key,
  },
  resultOf({ chainKey }, { isDue, ...stored }): HoldNow {
    const hold = rowFrom(storedHoldColumns, stored)
    requireSignedHold(chainKey, hold)
    return asOfNow(hold, isDue)
  },
})

/**
 * A hold by its holdId or bizId, which never have the same form; null if it is absent or of another workspace.
 *
 * @throws ModifiedRow
 */
export async function findHold(core: SettledReads, workspaceId: string, name: string): Promise<Hold | null> {
  const workspace = uuidFromId('workspace', workspaceId)
  if (!workspace) return null
  const key = { workspaceId: workspace, name: nameOf('hold', name) }
  const row = await readSettled(
    core,
    workspace,
    () => readHold(core, key),
    found => found?.isDue ?? false,
  )
  return row && toHold(row)
}

const holdsOfWorkspace: Sequence = {
  owner: 'select hold_count as total from ledger where workspace_id = $1',
  table: 'hold h',
  where: 'h.workspace_id = $1',
  number: 'h.number',
  createdAt: 'h.created_at',
  sortable: { createdAt: 'h.created_at', updatedAt, amount: 'h.amount', status },
}

const holdsOfWallet: Sequence = {
  ...holdsOfWorkspace,
  owner: `select hold_count as total from wallet where workspace_id = $1 and id = $2 and kind = 'CUSTOMER'`,
  where: 'h.workspace_id = $1 and h.wallet_id = $2',
  number: 'h.wallet_number',
}

/** A page of the holds of a workspace, or of one wallet; null if there is no such workspace or wallet. */
export async function listHolds(
  core: { lists: ListDatabase } & Pick<SettledReads, 'ledgerWaits'>,
  workspaceId: string,
  walletId: string | undefined,
  request: ListRequest<HoldFilter>,
): Promise<Page<Hold> | null> {
  const workspace = uuidFromId('workspace', workspaceId)
  const wallet = walletId === undefined ? undefined : uuidFromId('wallet', walletId)
  if (!workspace || wallet === null) return null
  const found = await readSettled(
    core,
    workspace,
    () => readHolds(core.lists, workspace, wallet, request),
    shown => shown?.content.some(({ isDue }) => isDue) ?? false,
  )
  return found && { ...found, content: found.content.map(({ hold }) => hold) }
}

function readHolds(
  db: ListDatabase,
  workspace: string,
  wallet: string | undefined,
  { filter, sort, page, size }: ListRequest<HoldFilter>,
): Promise<Page<{ hold: Hold; isDue: boolean }> | null> {
  const sequence = wallet === undefined ? holdsOfWorkspace : holdsOfWallet
  const values = wallet === undefined ? new Values(workspace) : new Values(workspace, wallet)
  const list: List = {
    workspace,
    sequence,
    conditions: conditionsOf(filter, values),
    findIn: hasIndex(filter) ? sequence : undefined,
    shows: { columns: `${selectColumns(shownHoldColumns, 'h')}, ${isDue} as "isDue"`, from: 'hold h' },
    filter,
    sort,
    page,
    size,
  }
  type FoundRow = Found<typeof shownHoldColumns> & { isDue: boolean }
  return readPage(db, list, values, ({ isDue, ...found }: FoundRow) => {
    const hold = asOfNow(rowFrom(shownHoldColumns, found), isDue)
    return { hold: toHold(hold), isDue }
  })
}

function conditionsOf({ status, currency, reference, bizIdPrefix }: HoldFilter, values: Values): string[] {
  return [
    ...(status ? [conditionOfStatus(status)] : []),
    ...(currency ? [`h.currency = ${values.bind(currency, 'text')}`] : []),
    ...(reference ? [`h.reference = ${values.bind(reference, 'text')}`] : []),
    ...(bizIdPrefix ? [textBeginsWith(values, 'h.biz_id', bizIdPrefix)] : []),
  ]
}

/** Constants, so that PostgreSQL recognizes the index of the open holds. */
function conditionOfStatus(status: NonNullable<HoldFilter['status']>): string {
  if (status === 'OPEN') return `h.status = 'OPEN' and h.expires_at > statement_timestamp()`
  return status === 'EXPIRED' ? `(h.status = 'EXPIRED' or ${isDue})` : `h.status = '${status}'`
}

/** Whether an index has the matches of the filter, which are usually few. */
function hasIndex({ status, reference, bizIdPrefix }: HoldFilter): boolean {
  return status === 'OPEN' || reference !== undefined || bizIdPrefix !== undefined
}
