import type { KeyObject } from 'node:crypto'
import {
  AdminError,
  amountFault,
  Decimal,
  DomainError,
  formatBalance,
  type Id,
  idFromUuid,
  type LimitInput,
  type LimitListing,
  type LimitPage,
  type LimitSubject,
  type SetLimitInput,
  type SpendingLimit as SpendingLimitRecord,
  type Uuid,
  uuidFromId,
} from '@workspace-wallet/contract'
import { ApiKey } from '../api-keys/entities.ts'
import { actorOfKey, isKey } from '../audit/actors.ts'
import { recordAction } from '../audit/record.ts'
import { databaseTime } from '../database/clock.ts'
import type { Em } from '../database/orm.ts'
import { isGenuine, requireGenuine } from '../database/row-signer.ts'
import { runIn } from '../database/run.ts'
import type { LimitRow } from '../database/tables/spending-limit.ts'
import { idToFind } from '../database/types.ts'
import { postingTime } from '../ledger/decide/draft.ts'
import { dayOf, endOfDay, isSet, spentOn, walletSubject } from '../ledger/decide/spending.ts'
import { Ledger } from '../ledger/rows/entities.ts'
import { writeLimit } from '../ledger/rows/functions.ts'
import { isPresent, lockLedger } from '../ledger/rows/lock.ts'
import { Wallet } from '../wallets/entities.ts'
import { SpendingLimit } from './entities.ts'

export type LimitAdministration = { actor: string; chainKey: KeyObject }

/** The condition of `isSet`, for the database. */
const notCleared = { $or: [{ perTransfer: { $ne: null } }, { perDay: { $ne: null } }] }

/**
 * Sets the limits of an API key or a wallet in one currency (docs/operations.md). They hold for the next transfer that is
 * posted. A limit whose row was modified outside the service is replaced, and counts from now on.
 *
 * @throws DomainError S012 for too many decimals; AdminError NOT_FOUND, NOT_ALLOWED for a wallet of another currency
 */
export async function setLimit(
  em: Em,
  administration: LimitAdministration,
  { workspaceId, subject, currency, ...bounds }: SetLimitInput,
): Promise<SpendingLimitRecord> {
  for (const [field, amount] of Object.entries(bounds)) {
    const fault = amount === undefined ? null : amountFault(amount, currency)
    if (fault) throw new DomainError('S012', { field, ...fault })
  }
  const ledger = await openLedger(em, workspaceId)
  await requireSubject(em, ledger.workspaceId, subject, currency)
  const stored = await em.findOne(SpendingLimit, {
    workspaceId: ledger.workspaceId,
    subject: storedSubject(subject),
    currency,
  })
  const at = postingTime(ledger, await databaseTime(em))
  const counted = stored?.isSet && isGenuine(stored) ? stored : null
  const limit: LimitRow = {
    workspaceId: ledger.row.workspaceId,
    subject: storedSubject(subject),
    currency,
    perTransfer: bounds.perTransfer === undefined ? null : new Decimal(bounds.perTransfer),
    perDay: bounds.perDay === undefined ? null : new Decimal(bounds.perDay),
    day: counted?.day ?? dayOf(at),
    spent: counted?.spent ?? new Decimal(0),
    countedFrom: counted?.countedFrom ?? ledger.position,
    createdAt: stored?.createdAt ?? at,
    updatedAt: at,
    revision: (stored?.revision ?? 0) + 1,
  }
  await save(em, administration, ledger, limit, counted)
  return recordOf(limit, at, true)
}

/**
 * Clears the limits of an API key or a wallet in one currency.
 *
 * @throws AdminError NOT_FOUND
 */
export async function clearLimit(
  em: Em,
  administration: LimitAdministration,
  { workspaceId, subject, currency }: LimitInput,
): Promise<void> {
  const ledger = await openLedger(em, workspaceId)
  const stored = await em.findOne(SpendingLimit, {
    workspaceId: ledger.workspaceId,
    subject: storedSubject(subject),
    currency,
  })
  if (!stored?.isSet)
    throw new AdminError('NOT_FOUND', `${idOf(subject)} has no limit in ${currency}: limit list shows all limits.`)
  const updatedAt = postingTime(ledger, await databaseTime(em))
  const limit = { ...stored.row, perTransfer: null, perDay: null, updatedAt, revision: stored.revision + 1 }
  await save(em, administration, ledger, limit, stored)
}

/**
 * A page of the limits of a workspace, including those that were written outside the service, of which there may be any number.
 *
 * @throws AdminError NOT_FOUND; NOT_ALLOWED if `after` is not the end of a page
 */
export async function listLimits(em: Em, { workspaceId, subject, after, limit }: LimitListing): Promise<LimitPage> {
  const ledger = await em.findOne(Ledger, { workspaceId: idToFind('workspace', workspaceId) })
  if (!ledger) throw new AdminError('NOT_FOUND', `There is no workspace ${workspaceId}.`)
  // The day of what is posted next.
  const at = postingTime(ledger, await databaseTime(em))
  const found = await em.find(
    SpendingLimit,
    {
      $and: [
        { workspaceId: ledger.workspaceId, ...(subject && { subject: storedSubject(subject) }) },
        notCleared,
        after === undefined ? {} : isAfter(after),
      ],
    },
    { orderBy: { subject: 'asc', currency: 'asc' }, limit: limit + 1 },
  )
  const page = found.slice(0, limit)
  return {
    limits: page.map(each => recordOf(each.row, at, isGenuine(each))),
    next: found.length > limit ? placeOf(page.at(-1)!) : null,
  }
}

/** Encoded as one word, because operators copy the end of a page to the command line. */
function placeOf({ subject, currency }: SpendingLimit): string {
  return Buffer.from(`${currency} ${subject}`).toString('base64url')
}

function isAfter(place: string) {
  const [, currency, subject] = /^([A-Z]+) ([^\0]*)$/.exec(Buffer.from(place, 'base64url').toString()) ?? []
  if (currency === undefined || subject === undefined)
    throw new AdminError(
      'NOT_ALLOWED',
      `The list of limits cannot continue after "${place}": it is not the end of a page.`,
    )
  // The first condition makes PostgreSQL begin there in the index.
  return { subject: { $gte: subject }, $or: [{ subject: { $gt: subject } }, { currency: { $gt: currency } }] }
}

async function openLedger(em: Em, workspaceId: string): Promise<Ledger> {
  const ledger = await lockLedger(em, idToFind('workspace', workspaceId))
  if (!isPresent(ledger)) throw new AdminError('NOT_FOUND', `There is no workspace ${workspaceId}.`)
  requireGenuine(ledger)
  return ledger
}

/** @throws AdminError NOT_FOUND; NOT_ALLOWED if the wallet has another currency */
async function requireSubject(
  em: Em,
  workspaceId: Id<'workspace'>,
  subject: LimitSubject,
  currency: string,
): Promise<void> {
  if ('apiKey' in subject) {
    const key = await em.findOne(ApiKey, { workspaceId, id: idToFind('apiKey', subject.apiKey), deletedAt: null })
    if (!key) throw new AdminError('NOT_FOUND', `${workspaceId} has no API key ${subject.apiKey}.`)
    return
  }
  const wallet = await em.findOne(Wallet, { workspaceId, id: idToFind('wallet', subject.walletId), kind: 'CUSTOMER' })
  if (!wallet) throw new AdminError('NOT_FOUND', `${workspaceId} has no wallet ${subject.walletId}.`)
  if (wallet.currency !== currency)
    throw new AdminError(
      'NOT_ALLOWED',
      `${subject.walletId} holds ${wallet.currency}: set a limit in ${wallet.currency}.`,
    )
}

async function save(
  em: Em,
  { actor, chainKey }: LimitAdministration,
  ledger: Ledger,
  limit: LimitRow,
  before: SpendingLimit | null,
): Promise<void> {
  const { workspaceId } = ledger
  const { subject, currency } = limit
  // Counted, because the ledger still counts a limit that was removed outside the service.
  const others = await em.count(SpendingLimit, { workspaceId, ...notCleared, $not: { subject, currency } })
  await writeLimit(runIn(em), chainKey, ledger.row, limit, others + (isSet(limit) ? 1 : 0))
  recordAction(em, {
    actor,
    action: isSet(limit) ? 'limit.set' : 'limit.clear',
    workspaceId,
    target: targetOf(subject),
    ...(before && { before: { currency, ...boundsOf(before.row) } }),
    // From them the verification knows which transfers count, and which amounts they must not exceed.
    after: { currency, ...boundsOf(limit), countedFrom: limit.countedFrom, position: ledger.position },
  })
}

function recordOf(limit: LimitRow, at: Date, isGenuine: boolean): SpendingLimitRecord {
  const { subject, currency, createdAt, updatedAt } = limit
  const target = targetOf(subject)
  return {
    apiKey: isKey(subject) ? target : null,
    walletId: isKey(subject) ? null : target,
    currency,
    ...boundsOf(limit),
    spentToday: spentOn(limit, dayOf(at)),
    resetsAt: endOfDay(at),
    createdAt,
    updatedAt,
    isModified: !isGenuine,
  }
}

function boundsOf({ perTransfer, perDay, currency }: LimitRow) {
  return {
    perTransfer: perTransfer && formatBalance(perTransfer, currency),
    perDay: perDay && formatBalance(perDay, currency),
  }
}

/** A subject as it is stored. */
function storedSubject(subject: LimitSubject): string {
  if ('apiKey' in subject) return actorOfKey(idToFind('apiKey', subject.apiKey))
  return walletSubject(uuidFromId('wallet', idToFind('wallet', subject.walletId)))
}

/** The public ID of a stored subject. */
function targetOf(subject: string): string {
  const [, id = ''] = subject.split(':')
  return isKey(subject) ? id : idFromUuid('wallet', id as Uuid<'wallet'>)
}

function idOf(subject: LimitSubject): string {
  return 'apiKey' in subject ? subject.apiKey : subject.walletId
}
