import type { KeyObject } from 'node:crypto'
import {
  AdminError,
  amountFault,
  type Caller,
  type CreateWalletInput,
  Decimal,
  DomainError,
  type FundingReceipt,
  idFromUuid,
  mintId,
  uuidFromId,
  type WalletChanger,
  type Wallet as WalletRecord,
  type WalletStatus,
  type WithdrawalInput,
} from '@workspace-wallet/contract'
import { recordAction } from '../audit/record.ts'
import { databaseTime } from '../database/clock.ts'
import type { Em } from '../database/orm.ts'
import { isGenuine, requireGenuine } from '../database/row-signer.ts'
import { runIn } from '../database/run.ts'
import type { WalletRow } from '../database/tables/wallet.ts'
import { idToFind } from '../database/types.ts'
import { emptyHead } from '../ledger/chain/chain.ts'
import type { Transfer } from '../ledger/chain/transfer.ts'
import { nameOf, newId, requestOf } from '../ledger/decide/commands.ts'
import { postingTime } from '../ledger/decide/draft.ts'
import type { Posting } from '../ledger/decide/requests.ts'
import type { Shards } from '../ledger/posting/shards.ts'
import type { Ledger } from '../ledger/rows/entities.ts'
import { changeWalletStatus, type EventAuthor, insertWallet } from '../ledger/rows/functions.ts'
import { isPresent, lockLedger } from '../ledger/rows/lock.ts'
import { type CheckedReads, modifiedRowError } from '../ledger/store/require-signed.ts'
import { Wallet } from './entities.ts'
import { findExternalWallet, findWallet, readExternalWallet } from './queries.ts'

/**
 * Who makes a change: the actor of the audit log, whether it is an operator or the workspace itself (`by`), and the client on
 * whose behalf a gateway calls (`caller`). `chainKey` signs the changed rows.
 */
export type Administration = {
  actor: string
  by: WalletChanger
  requestId: string
  caller?: Caller | undefined
  chainKey: KeyObject
}

/**
 * Creates an empty wallet. The first wallet of a currency also creates the hidden EXTERNAL wallet. Idempotent by bizId: a
 * replay, which has the same currency and name, returns the wallet as it is now.
 *
 * @throws DomainError T005; for a client also GA2032, S002 if the ledger is halted; AdminError NOT_FOUND; as
 *   `requireUnmodified`
 */
export async function createWallet(
  em: Em,
  administration: Administration,
  { currency, name, bizId = null, ...input }: NewWalletInput,
): Promise<WalletRecord> {
  const { actor, chainKey } = administration
  const workspaceId = idToFind('workspace', input.workspaceId)
  const locked = await lockLedger(em, workspaceId)
  const existing = bizId === null ? null : await em.findOne(Wallet, { workspaceId, bizId })
  if (existing) {
    if (existing.currency !== currency || existing.name !== name)
      throw new DomainError('T005', { bizId: existing.bizId! })
    requireUnmodified(existing, administration, `wallet ${existing.id}`)
    return toRecord(existing.row)
  }
  let ledger = requireOpen(locked, administration, input.workspaceId).row
  const author = authorOf(administration)
  const now = postingTime(ledger, await databaseTime(em))
  const add = async (given: Pick<WalletRow, 'kind' | 'number' | 'bizId' | 'name'>) => {
    const wallet = newWallet({ ...given, workspaceId: ledger.workspaceId, currency, createdAt: now })
    const written = await insertWallet(runIn(em), chainKey, ledger, wallet, author)
    ledger = written.ledger
    return wallet
  }
  if (!(await findExternalWallet(runIn(em), ledger.workspaceId, currency)))
    await add({ kind: 'EXTERNAL', number: null, bizId: null, name: 'external' })
  const wallet = await add({ kind: 'CUSTOMER', number: ledger.walletCount + 1, bizId, name })
  const target = idFromUuid('wallet', wallet.id)
  recordAction(em, { actor, action: 'wallet.create', workspaceId, target, after: { currency, name, bizId } })
  return toRecord(wallet)
}

type NewWalletInput = Pick<CreateWalletInput, 'workspaceId' | 'currency' | 'name'> & {
  bizId?: string | null | undefined
}
type NewWallet = Pick<WalletRow, 'workspaceId' | 'kind' | 'number' | 'bizId' | 'name' | 'currency' | 'createdAt'>

function newWallet(given: NewWallet): WalletRow {
  return {
    ...given,
    id: uuidFromId('wallet', mintId('wallet')),
    status: 'ACTIVE',
    frozenBy: null,
    balance: new Decimal(0),
    held: new Decimal(0),
    heldUntil: null,
    sequence: 0,
    orderCount: 0,
    holdCount: 0,
    head: emptyHead,
    updatedAt: given.createdAt,
    revision: 1,
  }
}

/**
 * Freezes, unfreezes or closes a wallet. A wallet that has the status already is returned as it is, unless an operator
 * freezes one that a client froze: from then on, only operators can unfreeze or close it.
 *
 * @throws DomainError W001; for a client also GA2032, S002 if the ledger is halted, W002, W004, W003; AdminError NOT_FOUND,
 *   NOT_ALLOWED for a closed wallet, WALLET_HOLDS_MONEY when closing one with money; as `requireUnmodified`
 */
export async function setWalletStatus(
  em: Em,
  administration: Administration,
  { workspaceId, walletId }: { workspaceId: string; walletId: string },
  status: WalletStatus,
): Promise<WalletRecord> {
  const { actor, by, chainKey } = administration
  const key = { workspaceId: idToFind('workspace', workspaceId), id: idToFind('wallet', walletId) }
  const locked = await lockLedger(em, key.workspaceId)
  const wallet = await em.findOne(Wallet, { ...key, kind: 'CUSTOMER' })
  if (wallet?.status === status && !(by === 'OPERATOR' && wallet.frozenBy === 'WORKSPACE')) {
    requireUnmodified(wallet, administration, `wallet ${walletId}`)
    return toRecord(wallet.row)
  }
  const ledger = requireOpen(locked, administration, workspaceId)
  if (!wallet) throw new DomainError('W001', { field: 'walletId' })
  if (by === 'OPERATOR') requireOperatorMayChange(wallet, status)
  else requireClientMayChange(wallet, status)
  requireUnmodified(wallet, administration, `wallet ${walletId}`)
  const at = postingTime(ledger, await databaseTime(em))
  const frozenBy = status === 'FROZEN' ? by : null
  const rows = { ledger: ledger.row, wallet: wallet.row }
  const before = { status: wallet.status, frozenBy: wallet.frozenBy ?? null }
  const change = { status, frozenBy, at }
  const changed = await changeWalletStatus(runIn(em), chainKey, rows, change, authorOf(administration))
  const after = { status, frozenBy }
  const target = { workspaceId: wallet.workspaceId, target: wallet.id }
  recordAction(em, { actor, action: actionOfStatus[status], ...target, before, after })
  return toRecord(changed.wallet)
}

const actionOfStatus = { ACTIVE: 'wallet.unfreeze', FROZEN: 'wallet.freeze', CLOSED: 'wallet.close' } as const

/** @throws DomainError W002, W004, W003, in this order */
function requireClientMayChange(wallet: Wallet, status: WalletStatus): void {
  if (wallet.status === 'CLOSED') throw new DomainError('W002', { field: 'walletId', status: wallet.status })
  if (wallet.frozenBy === 'OPERATOR') throw new DomainError('W004')
  // An empty wallet has no open holds either: they reserve a part of the balance.
  if (status === 'CLOSED' && !wallet.balance.isZero()) throw new DomainError('W003')
}

/** @throws AdminError NOT_ALLOWED, WALLET_HOLDS_MONEY */
function requireOperatorMayChange(wallet: Wallet, status: WalletStatus): void {
  if (wallet.status === 'CLOSED')
    throw new AdminError('NOT_ALLOWED', `${wallet.id} is closed, and a closed wallet cannot be reopened.`)
  if (status === 'CLOSED' && !wallet.balance.isZero())
    throw new AdminError(
      'WALLET_HOLDS_MONEY',
      `${wallet.id} holds money: withdraw or transfer it before you close the wallet.`,
    )
}

function authorOf({ actor, requestId, caller }: Administration): EventAuthor {
  return { actor, requestId, clientAddress: caller?.address ?? null }
}

export type Funding = {
  type: 'DEPOSIT' | 'WITHDRAWAL'
  workspaceId: string
  walletId: string
  amount: string
  bizId: string
  actor: string
  requestId: string
} & Pick<WithdrawalInput, 'holdId' | 'holdRemainder' | 'reason'>

/**
 * Deposits or withdraws money: a posting between the wallet and the hidden EXTERNAL wallet. Idempotent by bizId.
 *
 * @throws DomainError W001, S012, T005, W002, T002; with a hold H001, H004, H002, H003; S002 not posted; S003 outcome unknown
 */
export async function fundWallet(core: CheckedReads & { shards: Shards }, funding: Funding): Promise<FundingReceipt> {
  const { type, workspaceId, walletId, amount, actor, requestId } = funding
  const workspace = uuidFromId('workspace', workspaceId)
  const own = uuidFromId('wallet', walletId)
  const wallet = await findWallet(core, workspaceId, walletId)
  if (!wallet || !workspace || !own) throw new DomainError('W001', { field: 'walletId' })
  const fault = amountFault(amount, wallet.currency)
  if (fault) throw new DomainError('S012', { field: 'amount', ...fault })
  const external = await readExternalWallet(core, { workspace, currency: wallet.currency })
  if (!external) throw new Error(`workspace ${workspace} has wallets in ${wallet.currency} but no EXTERNAL wallet`)
  const { holdId, holdRemainder } = funding
  const posting: Posting = {
    kind: 'posting',
    type,
    transferId: newId('transfer', undefined),
    bizId: funding.bizId,
    reason: funding.reason,
    sourceWalletId: type === 'DEPOSIT' ? external : own,
    targetWalletId: type === 'DEPOSIT' ? own : external,
    amount,
    currency: wallet.currency,
    remark: null,
    reference: null,
    batchId: null,
    draw: holdId === undefined ? null : { hold: nameOf('hold', holdId), keepsRest: holdRemainder === 'KEEP' },
    actor,
    requestId,
    clientAddress: null,
  }
  const [made] = await core.shards.post(requestOf({ workspaceId, caller: { requestId } }, [posting]))
  return toReceipt({ ...made.transfer, type })
}

/** The columns of a deposit or withdrawal that its receipt contains. */
export type ShownFunding = Pick<
  Transfer,
  'transferId' | 'bizId' | 'amount' | 'currency' | 'sourceWalletId' | 'targetWalletId' | 'holdId' | 'createdAt'
> & { type: Funding['type'] }

export function toReceipt({ type, ...funding }: ShownFunding): FundingReceipt {
  const transferId = idFromUuid('transfer', funding.transferId)
  return {
    transferId,
    bizId: funding.bizId ?? transferId,
    walletId: idFromUuid('wallet', type === 'DEPOSIT' ? funding.targetWalletId : funding.sourceWalletId),
    type,
    amount: funding.amount,
    currency: funding.currency,
    holdId: funding.holdId && idFromUuid('hold', funding.holdId),
    createdAt: funding.createdAt,
  }
}

/**
 * The ledger, if wallets may be created and changed. Operators may do that in a halted workspace too.
 *
 * @throws DomainError GA2032, S002 for a client; AdminError NOT_FOUND for an operator; as `requireUnmodified`
 */
function requireOpen(ledger: Ledger | null, administration: Administration, workspaceId: string): Ledger {
  const isOperator = administration.by === 'OPERATOR'
  if (!isPresent(ledger))
    throw isOperator ? new AdminError('NOT_FOUND', `There is no workspace ${workspaceId}.`) : new DomainError('GA2032')
  if (ledger.status === 'HALTED' && !isOperator) throw new DomainError('S002', { retryAfterSeconds: 60 })
  requireUnmodified(ledger, administration, 'its ledger')
  return ledger
}

/** @throws ModifiedRow for a client; AdminError NOT_ALLOWED for an operator */
function requireUnmodified(row: Ledger | Wallet, { by }: Administration, what: string): void {
  if (by === 'WORKSPACE' && !isGenuine(row))
    throw modifiedRowError(row instanceof Wallet ? 'wallet' : 'ledger', uuidFromId('workspace', row.workspaceId), what)
  requireGenuine(row)
}

function toRecord({ id, bizId, name, currency, status, balance, createdAt, updatedAt }: WalletRow): WalletRecord {
  const walletId = idFromUuid('wallet', id)
  return { walletId, bizId, name, currency, status: status as WalletStatus, balance, createdAt, updatedAt }
}
