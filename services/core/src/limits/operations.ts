import type { KeyObject } from 'node:crypto'
import {
  AdminError,
  amountFault,
  Decimal,
  DomainError,
  formatBalance,
  idFromUuid,
  type LimitInput,
  type LimitSubject,
  type SetLimitInput,
  type SpendingLimit as SpendingLimitRecord,
  uuidFromId,
} from '@workspace-wallet/contract'
import { ApiKey } from '../api-keys/entities.ts'
import { actorOfKey, isKey } from '../audit/chain/actors.ts'
import { recordAction } from '../audit/chain/record.ts'
import { databaseTime } from '../database/clock.ts'
import type { Em } from '../database/orm.ts'
import { isGenuine, requireGenuine } from '../database/row-signer.ts'
import { runIn } from '../database/run.ts'
import type { LimitRow } from '../database/signed-rows.ts'
import { postingTime } from '../ledger/posting/draft.ts'
  const { subject, currency } = limit
  // Counted, because the ledger still counts a limit that was removed outside the service.
  const others = await em.count(SpendingLimit, {
    workspaceId,
    $not: { subject, currency },
    $or: [{ perTransfer: { $ne: null } }, { perDay: { $ne: null } }],
  })
  await writeLimit(runIn(em), chainKey, ledger.row, limit, others + (isSet(limit) ? 1 : 0))
  recordAction(em, {
    actor,
    action: isSet(limit) ? 'limit.set' : 'limit.clear',
    workspaceId,
    target: targetOf(subject),
    ...(before && { before: { currency, ...boundsOf(before.row) } }),
    after: { currency, ...boundsOf(limit) },
  })
}

function recordOf(limit: LimitRow, now: Date): SpendingLimitRecord {
  const { subject, currency, createdAt, updatedAt } = limit
  const target = targetOf(subject)
  return {
    apiKey: isKey(subject) ? target : null,
    walletId: isKey(subject) ? null : target,
    currency,
    ...boundsOf(limit),
    spentToday: spentOn(limit, dayOf(now)),
    resetsAt: endOfDay(now),
    createdAt,
    updatedAt,
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
  return 'apiKey' in subject ? actorOfKey(subject.apiKey) : walletSubject(uuidFromId('wallet', subject.walletId) ?? '')
}

/** The public ID of a stored subject. */
function targetOf(subject: string): string {
  const [, id = ''] = subject.split(':')
  return isKey(subject) ? id : idFromUuid('wallet', id)
}

function idOf(subject: LimitSubject): string {
  return 'apiKey' in subject ? subject.apiKey : subject.walletId
}
