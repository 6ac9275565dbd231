import { Decimal, type IdKind, mintId, type Uuid, uuidFromId } from '@workspace-wallet/contract'
import type { LedgerRequest, Posting } from '../../services/core/src/ledger/decide/requests.ts'
import { type LedgerState, nothingLoaded, type WalletState } from '../../services/core/src/ledger/decide/state.ts'

/** A short text in the place of a UUID. */
export function asUuid<Kind extends IdKind>(text: string): Uuid<Kind> {
  return text as Uuid<Kind>
}

/** A transfer of 1.00 USD with an ID of its own, and these changes. */
export function postingOf(changes: Partial<Posting> = {}): Posting {
  return {
    kind: 'posting',
    type: 'TRANSFER',
    transferId: uuidFromId('transfer', mintId('transfer')),
    bizId: null,
    sourceWalletId: asUuid('source'),
    targetWalletId: asUuid('target'),
    amount: '1.00',
    currency: 'USD',
    remark: null,
    reference: null,
    batchId: null,
    draw: null,
    actor: 'test',
    requestId: 'test',
    clientAddress: null,
    ...changes,
  }
}

/** A request with one posting, whose caller waits for ever. */
export function requestOf(workspaceId: string, posting: Posting, changes: Partial<LedgerRequest> = {}): LedgerRequest {
  const deadlineMs = Number.POSITIVE_INFINITY
  return { workspaceId: asUuid(workspaceId), commands: [posting], mayBePosted: false, deadlineMs, ...changes }
}

/** An empty wallet in USD as stored, with these changes. */
export function walletStateOf(id: string, changes: Partial<WalletState> = {}): WalletState {
  return {
    workspaceId: asUuid('w'),
    id: asUuid(id),
    number: null,
    kind: 'CUSTOMER',
    bizId: null,
    name: '',
    currency: 'USD',
    status: 'ACTIVE',
    frozenBy: null,
    balance: new Decimal(0),
    held: new Decimal(0),
    heldUntil: null,
    sequence: 0,
    orderCount: 0,
    holdCount: 0,
    head: Buffer.alloc(0),
    createdAt: new Date(0),
    updatedAt: new Date(0),
    revision: 1,
    mac: Buffer.alloc(0),
    version: '1',
    ...changes,
  }
}

/** An open ledger as stored, with these wallets and changes, and nothing else loaded. */
export function ledgerStateOf(wallets: Iterable<WalletState>, changes: Partial<LedgerState> = {}): LedgerState {
  return {
    workspaceId: asUuid('w'),
    status: 'OPEN',
    walletCount: 0,
    orderCount: 0,
    holdCount: 0,
    limitCount: 0,
    position: 0,
    journalHead: Buffer.alloc(0),
    lastPostedAt: new Date(0),
    haltReason: null,
    revision: 1,
    mac: Buffer.alloc(0),
    version: '1',
    wallets: new Map(Array.from(wallets, wallet => [wallet.id, wallet])),
    ...nothingLoaded,
    ...changes,
  }
}
