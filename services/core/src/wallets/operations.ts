import { LockMode } from '@mikro-orm/core'
import {
  AdminError,
  amountFault,
  Decimal,
  DomainError,
  type FundingReceipt,
  idFromUuid,
  mintId,
  uuidFromId,
  type Wallet as WalletRecord,
  type WalletStatus,
} from '@workspace-wallet/contract'
import { recordAction } from '../audit/chain/record.ts'
import { databaseTime } from '../database/clock.ts'
import type { Em } from '../database/orm.ts'
import type { Queryable } from '../database/statement.ts'
import { Ledger } from '../ledger/posting/entities.ts'
import type { Shards } from '../ledger/posting/shards.ts'
import { Wallet } from './entities.ts'
import { findExternalWallet, findWallet } from './queries.ts'

/** Creates an empty wallet. The first wallet of a currency also creates the hidden EXTERNAL wallet. @throws AdminError NOT_FOUND */
export async function createWallet(
  em: Em,
  actor: string,
  workspaceId: string,
  currency: string,
  name: string,
): Promise<WalletRecord> {
  const ledger = await lockLedger(em, workspaceId)
  const now = later(await databaseTime(em), ledger.lastPostedAt)
  const common = { workspaceId, currency, status: 'ACTIVE' as const, createdAt: now, updatedAt: now }
  if (!(await em.findOne(Wallet, { workspaceId, currency, kind: 'EXTERNAL' })))
    em.create(Wallet, { ...common, id: mintId('wallet'), kind: 'EXTERNAL', name: 'external' })
  ledger.walletCount += 1
  ledger.lastPostedAt = now
  const wallet = em.create(Wallet, {
    ...common,
    id: mintId('wallet'),
    number: ledger.walletCount,
    kind: 'CUSTOMER',
    name,
    balance: new Decimal(0),
  })
  recordAction(em, { actor, action: 'wallet.create', workspaceId, target: wallet.id, after: { currency, name } })
  await em.flush()
  return toRecord(wallet)
}

/**
 * Freezes, unfreezes or closes a wallet.
 *
 * @throws DomainError W001; AdminError NOT_ALLOWED for a closed wallet, WALLET_HOLDS_MONEY when closing one with money
 */
export async function setWalletStatus(
  em: Em,
  actor: string,
  workspaceId: string,
  walletId: string,
  status: WalletStatus,
): Promise<WalletRecord> {
  const ledger = await lockLedger(em, workspaceId)
  const wallet = await em.findOne(Wallet, { workspaceId, id: walletId, kind: 'CUSTOMER' })
  if (!wallet) throw new DomainError('W001', { field: 'walletId' })
  if (wallet.status === 'CLOSED' && status !== 'CLOSED')
    throw new AdminError('NOT_ALLOWED', `${walletId} is closed, and a closed wallet cannot be reopened.`)
  if (status === 'CLOSED' && !wallet.balance.isZero())
    throw new AdminError(
      'WALLET_HOLDS_MONEY',
      `${walletId} holds money: withdraw or transfer it before you close the wallet.`,
    )
  if (wallet.status !== status) {
    const before = { status: wallet.status }
    wallet.status = status
    wallet.updatedAt = later(await databaseTime(em), ledger.lastPostedAt)
    const action = ({ ACTIVE: 'wallet.unfreeze', FROZEN: 'wallet.freeze', CLOSED: 'wallet.close' } as const)[status]
    recordAction(em, { actor, action, workspaceId, target: walletId, before, after: { status } })
    await em.flush()
  }
  return toRecord(wallet)
}

export type Funding = {
  type: 'DEPOSIT' | 'WITHDRAWAL'
  workspaceId: string
  walletId: string
  amount: string
  bizId?: string | undefined
  actor: string
  requestId: string
}

const fundingBudgetMs = 10_000

/**
 * Deposits or withdraws money: a posting between the wallet and the hidden EXTERNAL wallet. Idempotent by bizId.
 *
 * @throws DomainError W001, S012, T005, W002, T002; S002 not posted; S003 outcome unknown
 */
export async function fundWallet(
  { reads, shards }: { reads: Queryable; shards: Shards },
  funding: Funding,
): Promise<FundingReceipt> {
  const { type, workspaceId, walletId, amount, actor, requestId } = funding
  const wallet = await findWallet(reads, workspaceId, walletId)
  if (!wallet) throw new DomainError('W001', { field: 'walletId' })
  const fault = amountFault(amount, wallet.currency)
  if (fault) throw new DomainError('S012', { field: 'amount', ...fault })
  const workspace = uuidFromId('workspace', workspaceId)!
  const own = uuidFromId('wallet', walletId)!
  const external = await findExternalWallet(reads, workspace, wallet.currency)
  const transfer = await shards.post({
    type,
    workspaceId: workspace,
    transferId: uuidFromId('transfer', mintId('transfer'))!,
    bizId: funding.bizId ?? null,
    sourceWalletId: type === 'DEPOSIT' ? external : own,
    targetWalletId: type === 'DEPOSIT' ? own : external,
    amount,
    currency: wallet.currency,
    remark: null,
    actor,
    requestId,
    clientAddress: null,
    mayBePosted: false,
    deadlineMs: performance.now() + fundingBudgetMs,
  })
  const transferId = idFromUuid('transfer', transfer.transferId)
  return {
    transferId,
    bizId: transfer.bizId ?? transferId,
    walletId,
    type,
    amount: transfer.amount,
    currency: transfer.currency,
    createdAt: transfer.createdAt,
  }
}

/** Locks the ledger row, which orders postings and changes of wallets. */
async function lockLedger(em: Em, workspaceId: string): Promise<Ledger> {
  const ledger = await em.findOne(Ledger, { workspaceId }, { lockMode: LockMode.PESSIMISTIC_WRITE })
  if (!ledger || ledger.status === 'CLOSED') throw new AdminError('NOT_FOUND', `There is no workspace ${workspaceId}.`)
  return ledger
}

/** The later time: times within a workspace never decrease, even if the clock does. */
function later(now: Date, last: Date): Date {
  return now > last ? now : last
}

function toRecord({ id, name, currency, status, balance, createdAt, updatedAt }: Wallet): WalletRecord {
  return { walletId: id, name, currency, status, balance, createdAt, updatedAt }
}
