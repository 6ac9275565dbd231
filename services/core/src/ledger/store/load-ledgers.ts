import type { KeyObject } from 'node:crypto'
import type { Uuid } from '@workspace-wallet/contract'
import type { PoolClient } from 'pg'
import { isKey } from '../../audit/actors.ts'
import { type AuditHead, lockAudit } from '../../audit/chain.ts'
import { runOn } from '../../database/run.ts'
import { continueChains } from '../chain/chain.ts'
import type { Transfer } from '../chain/transfer.ts'
import { isAudited } from '../decide/audited-commands.ts'
import { postingTime } from '../decide/draft.ts'
import {
  holdNamesOf,
  type LedgerRequest,
  type RowKey,
  reversedNamesOf,
  spendersOf,
  transferNamesOf,
  walletsOf,
  workspacesOf,
} from '../decide/requests.ts'
import { limitKey, walletSubject } from '../decide/spending.ts'
import type { HoldState, LedgerState, LimitState } from '../decide/state.ts'
import {
  type DueHolds,
  type FoundTransfer,
  findDueHolds,
  findHolds,
  findLimits,
  findTransfers,
  type LimitKey,
  type LoadedWallet,
  type LockedLedger,
  lastReversalsOf,
  loadWallets,
  loadWalletsOf,
  lockLedgers,
} from './queries.ts'
import { batchName, beginFor } from './transaction.ts'

type Loaded = {
  ledgers: Map<Uuid<'workspace'>, LedgerState>
  /** The existing transfers that were written outside the service. */
  forged: Transfer[]
  audit: AuditHead[]
  /** The database's clock after the locks were granted. */
  now: Date
}

/** Begins the transaction of a batch, locks its ledgers, and reads all that `decide` needs. */
export async function loadLedgers(client: PoolClient, chainKey: KeyObject, requests: LedgerRequest[]): Promise<Loaded> {
  const holdNames = holdNamesOf(requests)
  const reversedNames = reversedNamesOf(requests)
  const audited = workspacesOf(requests.filter(({ commands }) => commands.some(isAudited)))
  const queries = [
    client.query(beginFor(batchName(requests))),
    lockLedgers(client, workspacesOf(requests)),
    loadWallets(client, walletsOf(requests)),
    holdNames.length + reversedNames.length > 0 ? loadWalletsOf(client, holdNames, reversedNames) : [],
    findTransfers(client, [...transferNamesOf(requests), ...reversedNames]),
    findHolds(client, holdNames),
    audited.length > 0 ? lockAudit(runOn(client), audited) : [],
  ] as const
  await Promise.allSettled(queries)
  const [, ledgers, wallets, namedWallets, transfers, holds, audit] = await Promise.all(queries)

  const loadedWallets = [...wallets, ...namedWallets]
  const now = loadedWallets.reduce((latest, wallet) => (wallet.now > latest ? wallet.now : latest), new Date(0))
  const readings = [
    findTransfers(client, lastReversalsOf(transfers)),
    findDueHolds(client, dueWallets(ledgers, loadedWallets, now)),
    findLimits(client, limitKeys(ledgers, loadedWallets, requests)),
  ] as const
  await Promise.allSettled(readings)
  const [reversals, dueHolds, limits] = await Promise.all(readings)
  const states = statesOf(ledgers, loadedWallets, transfers, reversals, holds, dueHolds, limits)
  return {
    ledgers: new Map(states.map(state => [state.workspaceId, state])),
    forged: forgedOf(chainKey, [...transfers, ...reversals]),
    audit,
    now,
  }
}

/** The wallets with holds that may be due at the posting time. Those of ledgers that are not open do not expire. */
function dueWallets(ledgers: readonly LockedLedger[], wallets: readonly LoadedWallet[], now: Date) {
  const open = ledgers.filter(({ status }) => status === 'OPEN')
  const postedAt = new Map(open.map(ledger => [ledger.workspaceId, postingTime(ledger, now)]))
  const due = new Map<Uuid<'wallet'>, RowKey<'wallet'> & { at: Date }>()
  for (const { wallet } of wallets) {
    const at = postedAt.get(wallet.workspaceId)
    if (at && wallet.heldUntil !== null && wallet.heldUntil <= at)
      due.set(wallet.id, { workspaceId: wallet.workspaceId, id: wallet.id, at })
  }
  return [...due.values()]
}

/** What identifies the limits that may apply to these requests. Most ledgers have none. */
function limitKeys(
  ledgers: readonly LockedLedger[],
  wallets: readonly LoadedWallet[],
  requests: readonly LedgerRequest[],
): LimitKey[] {
  const limited = new Set(ledgers.flatMap(({ workspaceId, limitCount }) => (limitCount > 0 ? [workspaceId] : [])))
  if (limited.size === 0) return []
  const keys = new Map<string, LimitKey>()
  const add = (workspaceId: Uuid<'workspace'>, subject: string, currency: string) => {
    const key = { workspaceId, subject, currency }
    if (limited.has(workspaceId)) keys.set(`${workspaceId} ${limitKey(key)}`, key)
  }
  for (const { wallet } of wallets) add(wallet.workspaceId, walletSubject(wallet.id), wallet.currency)
  for (const { workspaceId, actor, currency } of spendersOf(requests))
    if (isKey(actor)) add(workspaceId, actor, currency)
  return [...keys.values()]
}

function statesOf(
  ledgers: readonly LockedLedger[],
  wallets: readonly LoadedWallet[],
  transfers: readonly FoundTransfer[],
  reversals: readonly FoundTransfer[],
  holds: readonly HoldState[],
  { due, withMore, nextExpiries }: DueHolds,
  limits: readonly LimitState[],
): LedgerState[] {
  const byWorkspace = <Row extends { workspaceId: Uuid<'workspace'> }>(rows: readonly Row[]) => {
    const groups = Map.groupBy(rows, ({ workspaceId }) => workspaceId)
    return (workspaceId: Uuid<'workspace'>) => groups.get(workspaceId) ?? []
  }
  const walletsOfWorkspace = byWorkspace(wallets.map(({ wallet }) => wallet))
  const transfersOfWorkspace = byWorkspace(transfers.map(({ transfer }) => transfer))
  const reversalsOfWorkspace = byWorkspace(reversals.map(({ transfer }) => transfer))
  const holdsOfWorkspace = byWorkspace([...holds, ...due])
  const expiriesOfWorkspace = byWorkspace(nextExpiries)
  const limitsOfWorkspace = byWorkspace(limits)
  return ledgers.map(ledger => {
    const own = transfersOfWorkspace(ledger.workspaceId)
    return {
      ...ledger,
      wallets: new Map(walletsOfWorkspace(ledger.workspaceId).map(wallet => [wallet.id, wallet])),
      byBizId: new Map(own.flatMap(transfer => (transfer.bizId === null ? [] : [[transfer.bizId, transfer]]))),
      byTransferId: new Map(own.map(transfer => [transfer.transferId, transfer])),
      reversedAmounts: new Map(
        reversalsOfWorkspace(ledger.workspaceId).map(({ reversesId, reversedTotal }) => [reversesId!, reversedTotal!]),
      ),
      holds: new Map(holdsOfWorkspace(ledger.workspaceId).map(hold => [hold.id, hold])),
      limits: new Map(limitsOfWorkspace(ledger.workspaceId).map(limit => [limitKey(limit), limit])),
      nextExpiries: new Map(expiriesOfWorkspace(ledger.workspaceId).map(({ id, expiresAt }) => [id, expiresAt])),
      hasMoreDueHolds: withMore.has(ledger.workspaceId),
    }
  })
}

/** Which of these transfers were written outside the service. */
function forgedOf(chainKey: KeyObject, found: readonly FoundTransfer[]): Transfer[] {
  return found.filter(each => !continueChains(chainKey, each)).map(({ transfer }) => transfer)
}
