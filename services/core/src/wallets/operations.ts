import type { KeyObject } from 'node:crypto'
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
import { requireGenuine } from '../database/row-signer.ts'
import { runIn } from '../database/run.ts'
import type { WalletRow } from '../database/signed-rows.ts'
import type { Queryable } from '../database/statement.ts'
import { emptyHead } from '../ledger/chain/chain.ts'
import type { Shards } from '../ledger/posting/shards.ts'
import type { Ledger } from '../ledger/rows/entities.ts'
import { changeWalletStatus, insertWallet } from '../ledger/rows/functions.ts'
import { lockLedger } from '../ledger/rows/lock.ts'
import { Wallet } from './entities.ts'
import { findExternalWallet, findWallet } from './queries.ts'

/** Who changes something, and the key under which rows are signed. */
type Administration = { actor: string; chainKey: KeyObject }

/** Creates an empty wallet. The first wallet of a currency also creates the hidden EXTERNAL wallet. @throws AdminError NOT_FOUND */
export async function createWallet(
  em: Em,
  { actor, chainKey }: Administration,
  { workspaceId, currency, name }: { workspaceId: string; currency: string; name: string },
): Promise<WalletRecord> {
  const locked = await lockOpenLedger(em, workspaceId)
  let ledger = locked.row
  const now = later(await databaseTime(em), ledger.lastPostedAt)
  const add = async (kind: Wallet['kind'], number: number | null, walletName: string) => {
    const wallet = newWallet({
      workspaceId: ledger.workspaceId,
      kind,
      number,
      name: walletName,
      currency,
      createdAt: now,
    })
    const written = await insertWallet(runIn(em), chainKey, ledger, wallet)
    ledger = written.ledger
    return wallet
  }
  if ((await em.count(Wallet, { workspaceId, currency, kind: 'EXTERNAL' })) === 0)
    await add('EXTERNAL', null, 'external')
  const wallet = await add('CUSTOMER', ledger.walletCount + 1, name)
  const target = idFromUuid('wallet', wallet.id)
  recordAction(em, { actor, action: 'wallet.create', workspaceId, target, after: { currency, name } })
  return toRecord(wallet)
}

type NewWallet = Pick<WalletRow, 'workspaceId' | 'kind' | 'number' | 'name' | 'currency' | 'createdAt'>

function newWallet(given: NewWallet): WalletRow {
  const id = uuidFromId('wallet', mintId('wallet'))!
  const empty = { balance: new Decimal(0), sequence: 0, orderCount: 0, head: emptyHead }
  return { ...given, id, status: 'ACTIVE', ...empty, updatedAt: given.createdAt, revision: 1 }
}

/**
 * Freezes, unfreezes or closes a wallet.
 *
 * @throws DomainError W001; AdminError NOT_ALLOWED for a closed wallet, WALLET_HOLDS_MONEY when closing one with money
 */
export async function setWalletStatus(
  em: Em,
  { actor, chainKey }: Administration,
  { workspaceId, walletId }: { workspaceId: string; walletId: string },
  status: WalletStatus,
): Promise<WalletRecord> {
  const ledger = await lockOpenLedger(em, workspaceId)
  const wallet = await em.findOne(Wallet, { workspaceId, id: walletId, kind: 'CUSTOMER' })
  if (!wallet) throw new DomainError('W001', { field: 'walletId' })
  if (wallet.status === 'CLOSED' && status !== 'CLOSED')
    throw new AdminError('NOT_ALLOWED', `${walletId} is closed, and a closed wallet cannot be reopened.`)
  if (status === 'CLOSED' && !wallet.balance.isZero())
    throw new AdminError(
      'WALLET_HOLDS_MONEY',
      `${walletId} holds money: withdraw or transfer it before you close the wallet.`,
    )
  if (wallet.status === status) return toRecord(wallet.row)
  requireGenuine(wallet)
  const now = later(await databaseTime(em), ledger.lastPostedAt)
  const before = { status: wallet.status }
  const changed = await changeWalletStatus(runIn(em), chainKey, { ledger: ledger.row, wallet: wallet.row }, status, now)
  const action = ({ ACTIVE: 'wallet.unfreeze', FROZEN: 'wallet.freeze', CLOSED: 'wallet.close' } as const)[status]
  recordAction(em, { actor, action, workspaceId, target: walletId, before, after: { status } })
  return toRecord(changed.wallet)
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

/** @throws AdminError when there is no such workspace, or the row of its ledger was modified outside the service */
async function lockOpenLedger(em: Em, workspaceId: string): Promise<Ledger> {
  const ledger = await lockLedger(em, workspaceId)
  if (!ledger || ledger.status === 'CLOSED') throw new AdminError('NOT_FOUND', `There is no workspace ${workspaceId}.`)
  requireGenuine(ledger)
  return ledger
}

/** The later time: times within a workspace never decrease, even if the clock does. */
function later(now: Date, last: Date): Date {
  return now > last ? now : last
}

function toRecord({ id, name, currency, status, balance, createdAt, updatedAt }: WalletRow): WalletRecord {
  const walletId = idFromUuid('wallet', id)
  return { walletId, name, currency, status: status as WalletStatus, balance, createdAt, updatedAt }
}
