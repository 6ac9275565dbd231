import type { KeyObject } from 'node:crypto'
import {
  Decimal,
  DomainError,
  type Flow,
  type FlowFilter,
  flowDirections,
  type Id,
  idFromUuid,
  type Page,
  transferTypes,
  type Uuid,
  uuidFromId,
  type Wallet,
  type WalletBalance,
  type WalletFilter,
} from '@workspace-wallet/contract'
import { batched } from '../database/batched.ts'
import { idBeginsWith, isPrefixOfFewIds, Values } from '../database/lists/conditions.ts'
import {
  type List,
  type ListRequest,
  type Search,
  type Sequence,
  type SortField,
  type Source,
  sortsBy,
} from '../database/lists/list.ts'
import type { ListDatabase } from '../database/lists/list-reader.ts'
import { readPage } from '../database/lists/page.ts'
import { type Em, kyselyOf } from '../database/orm.ts'
import type { Run } from '../database/run.ts'
import { plainArray, run, statement } from '../database/statement.ts'
import { bigint, decimal, decimalText, oneOf, text, time, uuid } from '../database/tables/columns.ts'
import { storedHoldColumns } from '../database/tables/hold.ts'
import { type FoundRow, jsonOf, type RowOf, rowFrom, selectColumns, type WithMac } from '../database/tables/table.ts'
import { storedWalletColumns, type WalletRow, walletColumns } from '../database/tables/wallet.ts'
import { inTurns } from '../database/turns.ts'
import type { WorkspaceConcurrencyLimit } from '../database/workspace-concurrency-limit.ts'
import { readSettled, type SettledReads } from '../holds/due-holds.ts'
import { type CheckedReads, requireSignedHold, requireSignedWallet } from '../ledger/store/require-signed.ts'
import { Wallet as WalletEntity } from './entities.ts'

/** The columns that lists read. Their rows have a `number` of their own. */
const { number, ...listedColumns } = walletColumns

function toWallet({
  id,
  bizId,
  name,
  currency,
  status,
  balance,
  createdAt,
  updatedAt,
}: RowOf<typeof listedColumns>): Wallet {
  return { walletId: idFromUuid('wallet', id), bizId, name, currency, status, balance, createdAt, updatedAt }
}

type WalletKey = { workspace: Uuid<'workspace'>; wallet: Uuid<'wallet'> }

const asked = `
  unnest($1::uuid[], $2::uuid[]) as asked (workspace_id, id) cross join lateral (
    select * from wallet where wallet.workspace_id = asked.workspace_id and wallet.id = asked.id limit 1) w`

const valuesOf = (keys: readonly WalletKey[]) => [
  plainArray(keys.map(({ workspace }) => workspace)),
  plainArray(keys.map(({ wallet }) => wallet)),
]
const nameOf = {
  key: ({ workspace, wallet }: WalletKey) => workspace + wallet,
  row: ({ workspaceId, id }: FoundRow<typeof storedWalletColumns>) => `${workspaceId}${id}`,
}

/** `mayHoldLess`: whether holds of the wallet may be due. */
type FoundWallet = WithMac<WalletRow> & { mayHoldLess: boolean | null }

const findWalletsStatement = statement<FoundRow<typeof storedWalletColumns> & Pick<FoundWallet, 'mayHoldLess'>>(
  'find-wallets',
  `select ${selectColumns(storedWalletColumns, 'w')}, w.held_until <= statement_timestamp() as "mayHoldLess" from ${asked}`,
)

const readWallet = batched({
  readMany: ({ reads }: CheckedReads, keys: readonly WalletKey[]) => run(reads, findWalletsStatement, valuesOf(keys)),
  nameOf,
  resultOf({ chainKey }, { mayHoldLess, ...found }): FoundWallet {
    const wallet = rowFrom(storedWalletColumns, found)
    requireSignedWallet(chainKey, wallet)
    return { ...wallet, mayHoldLess }
  },
})

/** Due holds of a wallet that a read takes into account. It checks the MAC of each of them. */
const dueHoldLimit = 250
/** More due holds of a wallet are read by a statement of their own. Reads of other workspaces can share that of a few. */
const fewDueHolds = 8

type WalletWithDueHolds = FoundRow<typeof storedWalletColumns> & { dueHolds: string | null }

/**
 * SQL for wallets and their due holds, in one statement, so that they are of the same moment. `dueHolds`: JSON as text, which core
 * parses of one wallet at a time; null without any.
 */
const walletsWithDueHolds = (limit: number) => `
  select ${selectColumns(storedWalletColumns, 'w')}, (
    select json_agg(${jsonOf(storedHoldColumns, 'h')})::text from (
      select * from hold h
      where h.workspace_id = w.workspace_id and h.wallet_id = w.id and h.status = 'OPEN'
        and h.expires_at <= statement_timestamp()
      order by h.expires_at limit ${limit + 1}) h) as "dueHolds"
  from ${asked}`

const findWalletsWithFewDueHoldsStatement = statement<WalletWithDueHolds>(
  'find-wallets-and-few-due-holds',
  walletsWithDueHolds(fewDueHolds),
)
const findWalletWithDueHoldsStatement = statement<WalletWithDueHolds>(
  'find-wallet-and-due-holds',
  walletsWithDueHolds(dueHoldLimit),
)

/** A wallet, and what its due holds would reserve if they had not expired; null if more are due than the read checks. */
type WalletNow = { wallet: WithMac<WalletRow>; due: Decimal | null }

async function checkDueHolds(
  chainKey: KeyObject,
  { dueHolds, ...found }: WalletWithDueHolds,
  limit: number,
): Promise<WalletNow> {
  const wallet = rowFrom(storedWalletColumns, found)
  requireSignedWallet(chainKey, wallet)
  const holds: FoundRow<typeof storedHoldColumns>[] = JSON.parse(dueHolds ?? '[]')
  if (holds.length > limit) return { wallet, due: null }
  let due = new Decimal(0)
  await inTurns(holds, json => {
    const hold = rowFrom(storedHoldColumns, json)
    requireSignedHold(chainKey, hold)
    due = due.plus(hold.remaining)
  })
  return { wallet, due }
}

const readWalletWithFewDueHolds = batched({
  readMany: ({ reads }: CheckedReads, keys: readonly WalletKey[]) =>
    run(reads, findWalletsWithFewDueHoldsStatement, valuesOf(keys)),
  nameOf,
  resultOf: ({ chainKey }, found) => checkDueHolds(chainKey, found, fewDueHolds),
})

/** Not shared with other reads, which would wait until the holds of all wallets are checked. */
async function readWalletWithDueHolds({ reads, chainKey }: CheckedReads, key: WalletKey): Promise<WalletNow | null> {
  const [found] = await run(reads, findWalletWithDueHoldsStatement, valuesOf([key]))
  return found ? checkDueHolds(chainKey, found, dueHoldLimit) : null
}

/**
 * One of the workspace's own wallets; null if it is absent, malformed, of another workspace or EXTERNAL.
 *
 * @throws ModifiedRow
 */
export async function findWallet(core: CheckedReads, workspaceId: string, walletId: string): Promise<Wallet | null> {
  const key = keyOf(workspaceId, walletId)
  const wallet = key && (await readWallet(core, key))
  return wallet?.kind === 'CUSTOMER' ? toWallet(wallet) : null
}

/** What `findBalance` needs. `dueHoldReads` limits reads of wallets with many due holds. */
type BalanceReads = SettledReads & { dueHoldReads: Pick<WorkspaceConcurrencyLimit, 'run'> }

/**
 * The balance of a wallet that `findWallet` finds. Due holds reserve nothing, whether or not their expiry is written. They are read
 * only if some may be due. Wallets with more than a few are read one at a time.
 *
 * @throws ModifiedRow; DomainError S002 if more holds of the wallet are due than one read checks, whose expiry is being written, or if
 *   other such reads are in progress
 */
export async function findBalance(
  core: BalanceReads,
  workspaceId: string,
  walletId: string,
): Promise<WalletBalance | null> {
  const key = keyOf(workspaceId, walletId)
  if (!key) return null
  const found = await readSettled(core, key.workspace, () => readNow(core, key), isHoldingLess)
  if (found?.wallet.kind !== 'CUSTOMER') return null
  const { wallet, due } = found
  if (due === null) throw new DomainError('S002', { retryAfterSeconds: 1 })
  const { currency, balance, sequence, updatedAt } = wallet
  const held = wallet.held.minus(due)
  return { walletId, currency, balance, held, available: balance.minus(held), sequence, updatedAt }
}

async function readNow(core: BalanceReads, key: WalletKey): Promise<WalletNow | null> {
  const wallet = await readWallet(core, key)
  if (!wallet?.mayHoldLess) return wallet && { wallet, due: new Decimal(0) }
  const found = await readWalletWithFewDueHolds(core, key)
  if (!found || found.due !== null) return found
  return core.dueHoldReads.run(key.workspace, () => readWalletWithDueHolds(core, key))
}

function isHoldingLess(found: WalletNow | null): boolean {
  return found?.due?.greaterThan(0) ?? false
}

function keyOf(workspaceId: string, walletId: string): WalletKey | null {
  const workspace = uuidFromId('workspace', workspaceId)
  const wallet = uuidFromId('wallet', walletId)
  return workspace && wallet ? { workspace, wallet } : null
}

const findExternalWalletStatement = statement<{ id: Uuid<'wallet'> }>(
  'find-external-wallet',
  `select id from wallet where workspace_id = $1 and currency = $2 and kind = 'EXTERNAL'`,
)

/** The hidden EXTERNAL wallet of this currency; null before the first wallet of the currency. */
export async function findExternalWallet(
  runStatement: Run,
  workspace: Uuid<'workspace'>,
  currency: string,
): Promise<Uuid<'wallet'> | null> {
  const [row] = await runStatement(findExternalWalletStatement, [workspace, currency])
  return row?.id ?? null
}

const findExternalWalletsStatement = statement<{ id: Uuid<'wallet'>; workspace: Uuid<'workspace'>; currency: string }>(
  'find-external-wallets',
  `select w.id, w.workspace_id as workspace, w.currency
   from unnest($1::uuid[], $2::text[]) as asked (workspace_id, currency)
     join wallet w on w.workspace_id = asked.workspace_id and w.currency = asked.currency and w.kind = 'EXTERNAL'`,
)

type ExternalKey = { workspace: Uuid<'workspace'>; currency: string }

/** Like `findExternalWallet`. Reads of the same turn of the event loop share one statement. */
export const readExternalWallet = batched({
  readMany: ({ reads }: CheckedReads, keys: readonly ExternalKey[]) =>
    run(reads, findExternalWalletsStatement, [
      plainArray(keys.map(({ workspace }) => workspace)),
      plainArray(keys.map(({ currency }) => currency)),
    ]),
  nameOf: {
    key: ({ workspace, currency }: ExternalKey) => `${workspace} ${currency}`,
    row: ({ workspace, currency }) => `${workspace} ${currency}`,
  },
  resultOf: (_, { id }) => id,
})

/** The IDs of a workspace's own wallets that hold money. */
export async function findWalletsWithMoney(em: Em, workspaceId: Id<'workspace'>): Promise<string[]> {
  const rows = await kyselyOf(em, WalletEntity)
    .selectFrom('Wallet')
    .select('id')
    .where('workspaceId', '=', workspaceId)
    .where('kind', '=', 'CUSTOMER')
    .where('balance', '>', new Decimal(0))
    .orderBy('number')
    .execute()
  return rows.map(({ id }) => id)
}

const walletsOfWorkspace: Sequence = {
  owner: 'select wallet_count as total from ledger where workspace_id = $1',
  table: 'wallet w',
  where: 'w.workspace_id = $1 and w.number is not null',
  number: 'w.number',
  createdAt: 'w.created_at',
  sortable: {
    createdAt: 'w.created_at',
    updatedAt: 'w.updated_at',
    amount: 'w.balance',
    status: 'w.status',
    name: 'w.name',
    currency: 'w.currency',
  },
}

/** A page of a workspace's wallets (section 4); null if there is no such workspace. */
export async function listWallets(
  db: ListDatabase,
  workspaceId: string,
  { filter, sort, page, size }: ListRequest<WalletFilter>,
): Promise<Page<Wallet> | null> {
  const workspace = uuidFromId('workspace', workspaceId)
  if (!workspace) return null
  const values = new Values(workspace)
  const conditions: string[] = []
  if (filter.status) conditions.push(`w.status = ${values.bind(filter.status, 'text')}`)
  if (filter.currency) conditions.push(`w.currency = ${values.bind(filter.currency, 'text')}`)
  const { walletIdPrefix = '' } = filter
  conditions.push(...idBeginsWith(values, 'w.id', 'wallet', walletIdPrefix))
  const list: List = {
    workspace,
    sequence: walletsOfWorkspace,
    conditions,
    findIn: isPrefixOfFewIds('wallet', walletIdPrefix) ? walletsOfWorkspace : undefined,
    shows: { columns: selectColumns(listedColumns, 'w'), from: 'wallet w' },
    filter,
    sort,
    page,
    size,
  }
  return readPage(db, list, values, (found: FoundRow<typeof listedColumns>) => toWallet(rowFrom(listedColumns, found)))
}

export const flowsOfWallet: Sequence = {
  owner: `select sequence as total from wallet where workspace_id = $1 and id = $2 and kind = 'CUSTOMER'`,
  table: 'flow f',
  where: 'f.workspace_id = $1 and f.wallet_id = $2',
  number: 'f.sequence',
  createdAt: 'f.created_at',
  sortable: { createdAt: 'f.created_at', updatedAt: 'f.created_at', amount: 'f.amount', status: null },
}

/** A wallet's flows of transfers between wallets. */
export const ordersOfWallet: Sequence = {
  ...flowsOfWallet,
  owner: `select order_count as total from wallet where workspace_id = $1 and id = $2 and kind = 'CUSTOMER'`,
  where: `${flowsOfWallet.where} and f.type = 'TRANSFER'`,
  numberOf: nth =>
    `(${nth} + greatest(0, ${fundingsBefore(nth, 'DEPOSIT', 'target')}, ${fundingsBefore(nth, 'WITHDRAWAL', 'source')}))`,
}

/**
 * SQL for the number of a wallet's deposits and withdrawals before its n-th order, as the last one of this type before that
 * order shows: its sequence minus the orders up to it. Null if there is no such deposit or withdrawal.
 */
function fundingsBefore(nth: string, type: 'DEPOSIT' | 'WITHDRAWAL', side: 'source' | 'target'): string {
  return `(
    select ${side}_sequence - ${side}_order_count from transfer
    where workspace_id = $1 and ${side}_wallet_id = $2 and type = '${type}' and ${side}_order_count < ${nth}
    order by ${side}_order_count desc, ${side}_sequence desc limit 1)`
}

/** A wallet's flows, for filters by transferId or bizId: the view `flow` would search for each side separately. */
export const transfersOfWallet: Source = {
  table: 'transfer t',
  where: 't.workspace_id = $1 and $2 in (t.source_wallet_id, t.target_wallet_id)',
  number: 'case t.source_wallet_id when $2 then t.source_sequence else t.target_sequence end',
  createdAt: 't.created_at',
  sortable: { createdAt: 't.created_at', updatedAt: 't.created_at', amount: 't.amount', status: null },
}

/** Each direction has an index by amount. */
export function flowPartsFor(sort: SortField[]): string[] | undefined {
  return sortsBy(sort, 'amount') ? [`f.direction = 'OUT'`, `f.direction = 'IN'`] : undefined
}

/** The columns of the view `flow` that lists read. */
export const flowColumns = {
  sequence: bigint,
  direction: oneOf(flowDirections),
  amount: decimalText,
  balanceAfter: decimal,
  type: oneOf(transferTypes),
  transferId: uuid('transfer'),
  currency: text,
  sourceWalletId: uuid('wallet'),
  targetWalletId: uuid('wallet'),
  createdAt: time,
}
export type FoundFlow = FoundRow<typeof flowColumns>

/** A page of a wallet's flows (section 4). Null when the workspace has no such wallet. */
export async function listFlows(
  db: ListDatabase,
  workspaceId: string,
  walletId: string,
  { filter, sort, page, size }: ListRequest<FlowFilter>,
): Promise<Page<Flow> | null> {
  const workspace = uuidFromId('workspace', workspaceId)
  const wallet = uuidFromId('wallet', walletId)
  if (!workspace || !wallet) return null
  const values = new Values(workspace, wallet)
  const search = isPrefixOfFewIds('transfer', filter.transferIdPrefix ?? '')
    ? flowsByTransferId(filter, values)
    : flowsByNumber(filter, sort, values)
  const shows = { columns: selectColumns(flowColumns, 'f'), from: 'flow f' }
  const list: List = { ...search, workspace, shows, filter, sort, page, size }
  return readPage(db, list, values, (found: FoundFlow) => toFlow(walletId, found))
}

function flowsByTransferId({ direction, type, transferIdPrefix = '' }: FlowFilter, values: Values): Search {
  const conditions = idBeginsWith(values, 't.id', 'transfer', transferIdPrefix)
  if (direction) conditions.push(`t.${direction === 'OUT' ? 'source' : 'target'}_wallet_id = $2`)
  if (type) conditions.push(`t.type = ${values.bind(type, 'text')}`)
  return { sequence: flowsOfWallet, conditions, findIn: transfersOfWallet }
}

function flowsByNumber(
  { direction, type, transferIdPrefix = '' }: FlowFilter,
  sort: SortField[],
  values: Values,
): Search {
  const conditions = idBeginsWith(values, 'f.transfer_id', 'transfer', transferIdPrefix)
  if (direction) conditions.push(`f.direction = ${values.bind(direction, 'text')}`)
  if (type === 'DEPOSIT') conditions.push(`f.type = 'DEPOSIT' and f.direction = 'IN'`)
  if (type === 'WITHDRAWAL') conditions.push(`f.type = 'WITHDRAWAL' and f.direction = 'OUT'`)
  return {
    sequence: type === 'TRANSFER' ? ordersOfWallet : flowsOfWallet,
    conditions,
    parts: conditions.length === 0 ? flowPartsFor(sort) : undefined,
  }
}

export function toFlow(walletId: string, found: FoundFlow): Flow {
  const row = rowFrom(flowColumns, found)
  const { direction, type } = row
  const isOut = direction === 'OUT'
  const counterparty = isOut ? row.targetWalletId : row.sourceWalletId
  return {
    flowId: flowIdOf(row.transferId, isOut),
    walletId,
    sequence: row.sequence,
    direction,
    type,
    amount: row.amount,
    balanceAfter: row.balanceAfter,
    currency: row.currency,
    transferId: idFromUuid('transfer', row.transferId),
    counterpartyWalletId: type !== 'TRANSFER' ? null : idFromUuid('wallet', counterparty),
    createdAt: row.createdAt,
  }
}

/** The flowIds of a transfer are its UUID and that UUID with the last bit flipped, so they need not be stored. */
function flowIdOf(transferId: Uuid<'transfer'>, isOut: boolean): Id<'flow'> {
  const lastDigit = Number.parseInt(transferId.at(-1)!, 16) ^ (isOut ? 0 : 1)
  return idFromUuid('flow', (transferId.slice(0, -1) + lastDigit.toString(16)) as Uuid<'flow'>)
}

/** The transfers that may have a flow with this UUID: only one of them exists. */
export function transfersOfFlow(flow: Uuid<'flow'>): Uuid<'transfer'>[] {
  const lastDigit = Number.parseInt(flow.at(-1)!, 16) ^ 1
  return [flow, flow.slice(0, -1) + lastDigit.toString(16)] as string[] as Uuid<'transfer'>[]
}
