import type { FilterQuery } from '@mikro-orm/core'
import {
  Decimal,
  DomainError,
  type FoundTransfers,
  type FundingListing,
  type Id,
  idFromUuid,
  isId,
  type TransferName,
  type TransferRecord,
  type TransferSearch,
  uuidFromId,
} from '@workspace-wallet/contract'
import { ApiKey } from '../api-keys/entities.ts'
import { apiKeyOf } from '../audit/actors.ts'
import type { Em } from '../database/orm.ts'
import type { entryColumns } from '../database/tables/transfer.ts'
import { idToFind } from '../database/types.ts'
import type { NameKey } from '../ledger/decide/requests.ts'
import { type FoundTransfer, findTransfers } from '../ledger/store/queries.ts'
import { type CheckedReads, requireChained } from '../ledger/store/require-signed.ts'
import { mergePages } from '../places/merge.ts'
import { Transfer } from '../transfers/entities.ts'
import { Wallet } from '../wallets/entities.ts'
import { type Searcher, type SearchParts, searchIn } from './bounded-search.ts'
import { beginsWith, between } from './conditions.ts'
import { type Cursor, cursorText, parseCursor } from './cursors.ts'

type Matches = FilterQuery<Transfer>
/** What a record shows of a transfer. */
type Recorded = Omit<
  Transfer,
  keyof typeof entryColumns | 'orderCount' | 'sourceSequence' | 'targetSequence' | 'holdRemaining' | 'reversedTotal'
>
type Search = Partial<TransferSearch> & Pick<TransferSearch, 'limit'>
type Page = { found: Transfer[]; cursorOf: (last: Transfer) => Cursor }

/**
 * A page of the transfers, deposits and withdrawals that match, newest first. Those of a wallet are read in the order of its flows, those of
 * a workspace in the order of its events, so a page costs the same at any depth. Over all workspaces, names have indexes, and
 * request ID, actor and time a BRIN index.
 *
 * @throws DomainError S012 for a cursor of another search; W001 if there is no such wallet
 */
export function searchTransfers(em: Em, search: TransferSearch): Promise<FoundTransfers> {
  return findPage(em, search, matchesOf(search))
}

/** A page of the transfers of all places: their order, and where a page begins, are the same in all. */
export function mergeTransfers(pages: readonly FoundTransfers[], limit: number): FoundTransfers {
  const [only, ...others] = pages
  // Those of a wallet or workspace have an order of their own.
  if (only && others.length === 0) return only
  const inAll = pages.map(({ transfers: items, next }) => ({ items, next }))
  const { items, hasMore } = mergePages(inAll, limit, newestFirst)
  const last = items.at(-1)
  const next = last && hasMore ? timeCursor({ createdAt: last.createdAt, id: last.transferId as Id<'transfer'> }) : null
  return { transfers: items, next: next && cursorText(next) }
}

function newestFirst(a: TransferRecord, b: TransferRecord): number {
  return b.createdAt.getTime() - a.createdAt.getTime() || (a.transferId < b.transferId ? 1 : -1)
}

function timeCursor({ createdAt, id }: Pick<Transfer, 'createdAt' | 'id'>): Cursor {
  return { by: 'time', value: createdAt.getTime(), id }
}

/** A page of deposits and withdrawals, newest first. @throws DomainError as `searchTransfers` */
export function listFundings(em: Em, listing: FundingListing): Promise<FoundTransfers> {
  const type = listing.type ?? { $ne: 'TRANSFER' as const }
  return findPage(em, listing, [...matchesOf({ ...listing, type: undefined }), { type }])
}

/**
 * A deposit or withdrawal, by its transferId, or by its bizId and workspace.
 *
 * @throws DomainError T001; ModifiedRow if it was written outside the service
 */
export async function getFunding(
  core: SearchParts & CheckedReads,
  by: Searcher,
  name: TransferName,
): Promise<TransferRecord> {
  const found = await searchIn(core, by, { blamed: 'name', read: em => findNamed(em, name) })
  if (!found || found.type === 'TRANSFER') throw new DomainError('T001')
  const [stored] = await findTransfers(core.reads, [keyOf(found)])
  if (!stored) throw new DomainError('T001')
  requireChained(core.chainKey, stored)
  return checkedRecordOf(stored)
}

/** The name by which `findTransfers` finds a transfer with its flows. */
export function keyOf({ workspaceId, id }: Pick<Transfer, 'workspaceId' | 'id'>): NameKey<'transfer'> {
  return { workspaceId: uuidFromId('workspace', workspaceId), name: { id: uuidFromId('transfer', id) } }
}

/**
 * The transfer, deposit or withdrawal with a transferId, or with a bizId in a workspace; null if there is none.
 *
 * @throws DomainError S012 REQUIRED for a bizId without a workspace, where several may have it, and for a transferId that several have
 */
export async function findNamed(em: Em, { workspaceId, name }: TransferName): Promise<Transfer | null> {
  const named = isId('transfer', name) ? { id: name } : { bizId: name }
  if (workspaceId !== undefined)
    return em.findOne(Transfer, { ...named, workspaceId: idToFind('workspace', workspaceId) })
  if ('bizId' in named) throw workspaceRequired()
  return requireOneOf(await em.find(Transfer, named, { limit: 2 }))
}

/**
 * The only one of what was found for a transferId without a workspace; null without any. Callers of core can generate the same
 * transferId for transfers of several workspaces.
 *
 * @throws DomainError S012 REQUIRED if there are several
 */
export function requireOneOf<Found>([found, ...others]: readonly Found[]): Found | null {
  if (others.length > 0) throw workspaceRequired()
  return found ?? null
}

const workspaceRequired = () => new DomainError('S012', { field: 'workspaceId', reason: 'REQUIRED' })

async function findPage(em: Em, search: Search, matches: Matches[]): Promise<FoundTransfers> {
  const { limit } = search
  const { found, cursorOf } = await readPage(em, search, matches)
  const transfers = found.slice(0, limit)
  const next = found.length > limit ? cursorText(cursorOf(transfers.at(-1)!)) : null
  return { transfers: transfers.map(toTransferRecord), next }
}

async function readPage(em: Em, search: Search, matches: Matches[]): Promise<Page> {
  const { walletId, workspaceId: asked } = search
  if (walletId !== undefined) return readOfWallet(em, search, idToFind('wallet', walletId), matches)
  const workspaceId = asked === undefined ? await workspaceOfActor(em, search.actor) : idToFind('workspace', asked)
  if (workspaceId !== undefined) return readOfWorkspace(em, search, workspaceId, matches)
  return readOfAll(em, search, matches)
}

/** Merges the flows out of a wallet and those into it: each has an index in the order of sequences. */
async function readOfWallet(em: Em, search: Search, walletId: Id<'wallet'>, matches: Matches[]): Promise<Page> {
  const { workspaceId: asked, limit, after } = search
  const wallet = await em.findOne(Wallet, {
    id: walletId,
    kind: 'CUSTOMER',
    ...(asked !== undefined && { workspaceId: idToFind('workspace', asked) }),
  })
  if (!wallet) throw new DomainError('W001', { field: 'walletId' })
  const { workspaceId } = wallet
  const below = after === undefined ? {} : { $lt: requireCursor('sequence', after).value }
  const first = { limit: limit + 1 }
  const sequenceOf = (transfer: Transfer) =>
    transfer.sourceWalletId === walletId ? transfer.sourceSequence : transfer.targetSequence
  const out = await em.find(
    Transfer,
    { $and: [{ workspaceId, sourceWalletId: walletId, ...(after && { sourceSequence: below }) }, ...matches] },
    { ...first, orderBy: { sourceSequence: 'desc' } },
  )
  const into = await em.find(
    Transfer,
    { $and: [{ workspaceId, targetWalletId: walletId, ...(after && { targetSequence: below }) }, ...matches] },
    { ...first, orderBy: { targetSequence: 'desc' } },
  )
  const found = [...out, ...into].sort((a, b) => sequenceOf(b) - sequenceOf(a)).slice(0, limit + 1)
  return { found, cursorOf: last => ({ by: 'sequence', value: sequenceOf(last) }) }
}

async function readOfWorkspace(
  em: Em,
  search: Search,
  workspaceId: Id<'workspace'>,
  matches: Matches[],
): Promise<Page> {
  const { limit, after } = search
  const position = after === undefined ? {} : { position: { $lt: requireCursor('position', after).value } }
  const found = await em.find(
    Transfer,
    { $and: [{ workspaceId, ...position }, ...matches] },
    { orderBy: { position: 'desc' }, limit: limit + 1 },
  )
  return { found, cursorOf: last => ({ by: 'position', value: last.position }) }
}

async function readOfAll(em: Em, search: Search, matches: Matches[]): Promise<Page> {
  const { limit, after } = search
  const found = await em.find(
    Transfer,
    { $and: after === undefined ? matches : [...matches, before(requireCursor('time', after))] },
    { orderBy: [{ createdAt: 'desc' }, { id: 'desc' }], limit: limit + 1 },
  )
  return { found, cursorOf: timeCursor }
}

/** The first condition is for the index. */
function before({ value, id }: Extract<Cursor, { by: 'time' }>): Matches {
  const createdAt = new Date(value)
  return {
    $and: [{ createdAt: { $lte: createdAt } }, { $or: [{ createdAt: { $lt: createdAt } }, { id: { $lt: id } }] }],
  }
}

function requireCursor<By extends Cursor['by']>(by: By, text: string): Extract<Cursor, { by: By }> {
  const cursor = parseCursor(by, text)
  if (!cursor) throw new DomainError('S012', { field: 'after', reason: 'NOT_A_POSITION' })
  return cursor
}

/** An API key makes transfers in its own workspace only. */
async function workspaceOfActor(em: Em, actor: string | undefined): Promise<Id<'workspace'> | undefined> {
  const apiKey = actor === undefined ? null : apiKeyOf(actor)
  if (apiKey === null) return undefined
  return (await em.findOne(ApiKey, { id: idToFind('apiKey', apiKey) }))?.workspaceId
}

/** The conditions that were given, except workspace and wallet. */
function matchesOf(search: Partial<TransferSearch>): Matches[] {
  const { type, transferId, bizId, reference, remarkPrefix, currency, actor, requestId } = search
  const { amountFrom, amountTo, from, to } = search
  const exact = {
    type,
    id: transferId && idToFind('transfer', transferId),
    bizId,
    reference,
    currency,
    actor,
    requestId,
  }
  const given = Object.entries(exact).filter(([, value]) => value !== undefined)
  return [
    Object.fromEntries(given) as Matches,
    ...(remarkPrefix === undefined ? [] : [{ remark: beginsWith(remarkPrefix) }]),
    ...(amountFrom || amountTo ? [{ amount: between(amountFrom, amountTo) }] : []),
    ...(from ? [{ createdAt: { $gte: from } }] : []),
    ...(to ? [{ createdAt: { $lt: to } }] : []),
  ]
}

/** The record of a row as it was when its flows were checked: another statement may have read something else. */
export function checkedRecordOf({ transfer }: FoundTransfer): TransferRecord {
  const { holdId, reversesId, batchId } = transfer
  return toTransferRecord({
    ...transfer,
    workspaceId: idFromUuid('workspace', transfer.workspaceId),
    id: idFromUuid('transfer', transfer.transferId),
    amount: new Decimal(transfer.amount),
    sourceWalletId: idFromUuid('wallet', transfer.sourceWalletId),
    targetWalletId: idFromUuid('wallet', transfer.targetWalletId),
    holdId: holdId && idFromUuid('hold', holdId),
    reversesId: reversesId && idFromUuid('transfer', reversesId),
    batchId: batchId && idFromUuid('transfer', batchId),
  })
}

function toTransferRecord(transfer: Recorded): TransferRecord {
  const { workspaceId, id, type, amount, currency, sourceWalletId, targetWalletId } = transfer
  const { actor, requestId, position, createdAt } = transfer
  return {
    workspaceId,
    transferId: id,
    type,
    bizId: transfer.bizId ?? null,
    reference: transfer.reference ?? null,
    remark: transfer.remark ?? null,
    amount,
    currency,
    sourceWalletId: type === 'DEPOSIT' ? null : sourceWalletId,
    targetWalletId: type === 'WITHDRAWAL' ? null : targetWalletId,
    holdId: transfer.holdId ?? null,
    reversesTransferId: transfer.reversesId ?? null,
    batchId: transfer.batchId ?? null,
    actor,
    requestId,
    clientAddress: transfer.clientAddress ?? null,
    position,
    createdAt,
  }
}
