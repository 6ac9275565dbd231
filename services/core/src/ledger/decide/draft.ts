import { Decimal, DomainError, decimalsOf, mintId, type Uuid, uuidFromId } from '@workspace-wallet/contract'
import type { JournalEntry, JournalType } from '../chain/journal.ts'
import type { Entry, Transfer } from '../chain/transfer.ts'
import type { MadeTransfer, Name, RequestResult, WalletRef } from './requests.ts'
import { isSet, limitKey, subjectsOf, withSpent } from './spending.ts'
import type { Decision, HoldState, LedgerState, LimitState, WalletState } from './state.ts'

/** What a command says of its transfer; the draft adds the rest. */
type GivenTransfer = Omit<
  Transfer,
  'workspaceId' | 'position' | 'orderCount' | 'sourceSequence' | 'targetSequence' | 'createdAt'
>

type Caller = Pick<JournalEntry, 'actor' | 'requestId' | 'clientAddress'>

/**
 * A ledger while a batch is applied to it: the stored rows, and the changes so far. The changes of one request can be
 * undone until it is complete.
 */
export class Draft {
  readonly ledger: LedgerState
  readonly postedAt: Date
  readonly #wallets: Changes<Uuid<'wallet'>, WalletState>
  readonly #holds: Changes<Uuid<'hold'>, HoldState>
  readonly #holdIds: Changes<string, Uuid<'hold'>>
  readonly #limits: Changes<string, LimitState>
  readonly #byBizId: Changes<string, Transfer>
  readonly #byTransferId: Changes<Uuid<'transfer'>, Transfer>
  readonly #reversedAmounts: Changes<Uuid<'transfer'>, string>
  readonly #events: JournalEntry[] = []
  readonly #transfers: Transfer[] = []
  readonly #entries: Entry[] = []
  #orderCount: number
  #holdCount: number
  #savepoint: { transfers: number; orderCount: number } | null = null

  constructor(ledger: LedgerState, now: Date) {
    this.ledger = ledger
    this.postedAt = postingTime(ledger, now)
    this.#wallets = new Changes(ledger.wallets)
    this.#holds = new Changes(ledger.holds)
    this.#holdIds = new Changes(new Map(Array.from(ledger.holds.values(), ({ bizId, id }) => [bizId, id])))
    this.#limits = new Changes(ledger.limits)
    this.#byBizId = new Changes(ledger.byBizId)
    this.#byTransferId = new Changes(ledger.byTransferId)
    this.#reversedAmounts = new Changes(ledger.reversedAmounts)
    this.#orderCount = ledger.orderCount
    this.#holdCount = ledger.holdCount
  }

  /** The wallet, if the batch has loaded it. No wallet has a malformed ID. */
  wallet(ref: WalletRef): WalletState | undefined {
    return typeof ref === 'string' ? this.#wallets.get(ref) : undefined
  }

  hold(name: Name<'hold'>): HoldState | undefined {
    const id = 'id' in name ? name.id : this.#holdIds.get(name.bizId)
    return id === undefined ? undefined : this.#holds.get(id)
  }

  /** The holds that the batch names, and the due ones of its wallets. */
  holds(): readonly HoldState[] {
    return [...this.ledger.holds.values()]
  }

  /** The limits that apply when an actor spends from a wallet. Cleared ones do not. */
  limitsOf(actor: string, { id, currency }: WalletState): LimitState[] {
    if (this.ledger.limits.size === 0) return []
    const limits = subjectsOf(actor, id).flatMap(subject => this.#limits.get(limitKey({ subject, currency })) ?? [])
    return limits.filter(isSet)
  }

  transfer(name: Name<'transfer'>): Transfer | undefined {
    return 'id' in name ? this.#byTransferId.get(name.id) : this.#byBizId.get(name.bizId)
  }

  made(transfer: Transfer): MadeTransfer {
    return { transfer, reversedAmount: this.reversedAmount(transfer).toFixed(decimalsOf(transfer.currency)) }
  }

  /** The sum of the reversals of a transfer. */
  reversedAmount({ transferId }: Transfer): Decimal {
    return new Decimal(this.#reversedAmounts.get(transferId) ?? 0)
  }

  /**
   * T002 if an amount is more than is available. S002 if it may only be because more holds of this wallet are due than the
   * batch expires.
   */
  missingFunds({ balance, held, heldUntil }: WalletState, amount: Decimal): DomainError | null {
    // Not `lessThan`, which is false for NaN: a balance that is not a number must be rejected too.
    if (balance.minus(held).greaterThanOrEqualTo(amount)) return null
    const mayHoldLess = this.ledger.hasMoreDueHolds && heldUntil !== null && heldUntil <= this.postedAt
    return mayHoldLess ? new DomainError('S002', { retryAfterSeconds: 1 }) : new DomainError('T002')
  }

  /** Moves the amount of a transfer from its source to its target. */
  addTransfer(given: GivenTransfer): MadeTransfer {
    const isOrder = given.type === 'TRANSFER'
    const amount = new Decimal(given.amount)
    const source = this.#addEntry(given.sourceWalletId, amount.negated(), isOrder)
    const target = this.#addEntry(given.targetWalletId, amount, isOrder)
    if (isOrder) this.#orderCount += 1
    const limits = given.type === 'DEPOSIT' ? [] : this.limitsOf(given.actor, source)
    for (const limit of limits) this.#limits.set(limitKey(limit), withSpent(limit, amount, this.postedAt))
    const transfer: Transfer = {
      ...given,
      workspaceId: this.ledger.workspaceId,
      position: this.#position + 1,
      orderCount: this.#orderCount,
      sourceSequence: source.sequence,
      targetSequence: target.sequence,
      createdAt: this.postedAt,
    }
    this.#transfers.push(transfer)
    this.#entries.push(entryOf(transfer, source, 'OUT'), entryOf(transfer, target, 'IN'))
    if (transfer.bizId !== null) this.#byBizId.set(transfer.bizId, transfer)
    this.#byTransferId.set(transfer.transferId, transfer)
    if (transfer.reversesId !== null) this.#reversedAmounts.set(transfer.reversesId, transfer.reversedTotal!)
    return this.made(transfer)
  }

  /** Adds a hold on a wallet, which counts it. */
  addHold(
    given: Omit<HoldState, 'workspaceId' | 'number' | 'walletNumber' | 'createdAt' | 'updatedAt' | 'revision' | 'mac'>,
  ): HoldState {
    const wallet = this.#wallets.get(given.walletId)!
    const hold: HoldState = {
      ...given,
      workspaceId: this.ledger.workspaceId,
      number: this.#holdCount + 1,
      walletNumber: wallet.holdCount + 1,
      createdAt: this.postedAt,
      updatedAt: this.postedAt,
      revision: 1,
      mac: null,
    }
    this.#holdCount += 1
    this.#holds.set(hold.id, hold)
    this.#holdIds.set(hold.bizId, hold.id)
    const isEarlier = wallet.heldUntil === null || hold.expiresAt < wallet.heldUntil
    this.#wallets.set(wallet.id, {
      ...wallet,
      held: wallet.held.plus(hold.remaining),
      heldUntil: isEarlier ? hold.expiresAt : wallet.heldUntil,
      holdCount: hold.walletNumber,
    })
    return hold
  }

  /** Changes what remains of an open hold, and what its wallet holds. */
  changeHold(before: HoldState, change: Pick<HoldState, 'status' | 'remaining'> & Partial<HoldState>): HoldState {
    const hold = { ...before, updatedAt: this.postedAt, ...change }
    const wallet = this.#wallets.get(hold.walletId)!
    const held = wallet.held.minus(before.remaining).plus(hold.remaining)
    this.#holds.set(hold.id, hold)
    this.#wallets.set(wallet.id, { ...wallet, held, heldUntil: held.isZero() ? null : wallet.heldUntil })
    return hold
  }

  /** Sets the time at which the next hold of a wallet expires. */
  setHeldUntil(walletId: Uuid<'wallet'>, heldUntil: Date): void {
    const wallet = this.#wallets.get(walletId)!
    if (!wallet.held.isZero()) this.#wallets.set(walletId, { ...wallet, heldUntil })
  }

  /** Adds an event of a hold to the journal. Events precede all transfers of the batch. */
  addEvent(type: JournalType, hold: HoldState, { actor, requestId, clientAddress }: Caller): void {
    if (this.#transfers.length > 0) throw new Error('events of holds are decided before transfers')
    const decimals = decimalsOf(hold.currency)
    this.#events.push({
      workspaceId: this.ledger.workspaceId,
      position: this.#position + 1,
      orderCount: this.ledger.orderCount,
      id: uuidFromId('event', mintId('event')),
      type,
      walletId: hold.walletId,
      holdId: hold.id,
      captured: hold.captured.toFixed(decimals),
      remaining: hold.remaining.toFixed(decimals),
      status: hold.status,
      actor,
      requestId,
      clientAddress,
      createdAt: this.postedAt,
    })
  }

  /** Begins changes that `undo` reverts or `keep` completes. Events cannot be reverted: there must be none among them. */
  begin(): void {
    this.#savepoint = { transfers: this.#transfers.length, orderCount: this.#orderCount }
    for (const changes of this.#allChanges) changes.begin()
  }

  keep(): void {
    for (const changes of this.#allChanges) changes.keep()
  }

  undo(): void {
    for (const changes of this.#allChanges) changes.undo()
    const { transfers, orderCount } = this.#savepoint!
    this.#transfers.length = transfers
    this.#entries.length = 2 * transfers
    this.#orderCount = orderCount
  }

  decision(results: RequestResult[]): Decision {
    const { workspaceId, status, walletCount, limitCount, haltReason, revision, journalHead } = this.ledger
    return {
      results,
      before: this.ledger,
      after: {
        workspaceId,
        status,
        walletCount,
        orderCount: this.#orderCount,
        holdCount: this.#holdCount,
        limitCount,
        position: this.#position,
        journalHead,
        lastPostedAt: this.postedAt,
        haltReason,
        revision,
      },
      events: this.#events,
      holds: [...this.#holds.changed.values()],
      limits: [...this.#limits.changed.values()],
      transfers: this.#transfers,
      entries: this.#entries,
      wallets: [...this.#wallets.changed.values()],
    }
  }

  get #position(): number {
    return this.ledger.position + this.#events.length + this.#transfers.length
  }

  get #allChanges(): { begin(): void; keep(): void; undo(): void }[] {
    return [
      this.#wallets,
      this.#holds,
      this.#holdIds,
      this.#limits,
      this.#byBizId,
      this.#byTransferId,
      this.#reversedAmounts,
    ]
  }

  #addEntry(walletId: Uuid<'wallet'>, amount: Decimal, isOrder: boolean): WalletState {
    const before = this.#wallets.get(walletId)!
    const wallet = {
      ...before,
      balance: before.balance.plus(amount),
      sequence: before.sequence + 1,
      orderCount: before.orderCount + (isOrder ? 1 : 0),
      updatedAt: this.postedAt,
    }
    this.#wallets.set(walletId, wallet)
    return wallet
  }
}

/** The time of what is posted now. The times of a ledger never decrease, even when the clock is set back. */
export function postingTime({ lastPostedAt }: Pick<LedgerState, 'lastPostedAt'>, now: Date): Date {
  return now > lastPostedAt ? now : lastPostedAt
}

/** A map with changes. After `begin`, they are pending until they are kept or undone. */
class Changes<Key extends string, Value> {
  readonly #stored: ReadonlyMap<Key, Value>
  readonly changed = new Map<Key, Value>()
  #pending: Map<Key, Value> | null = null

  constructor(stored: ReadonlyMap<Key, Value>) {
    this.#stored = stored
  }

  get(key: Key): Value | undefined {
    return this.#pending?.get(key) ?? this.changed.get(key) ?? this.#stored.get(key)
  }

  set(key: Key, value: Value): void {
    const changes = this.#pending ?? this.changed
    changes.set(key, value)
  }

  begin(): void {
    this.#pending = new Map()
  }

  keep(): void {
    for (const [key, value] of this.#pending!) this.changed.set(key, value)
    this.#pending = null
  }

  undo(): void {
    this.#pending = null
  }
}

function entryOf(transfer: Transfer, wallet: WalletState, direction: Entry['direction']): Entry {
  return {
    workspaceId: transfer.workspaceId,
    walletId: wallet.id,
    sequence: wallet.sequence,
    transferId: transfer.transferId,
    direction,
    amount: transfer.amount,
    balanceAfter: wallet.balance.toFixed(decimalsOf(wallet.currency)),
    orderCount: wallet.orderCount,
    createdAt: transfer.createdAt,
  }
}
