/**
 * Checks the answers to concurrent clients against the model. The event log gives the order in which the system carried
 * commands out: the model replays it, and must come to the same events. Every answer must be that of the model at some
 * position between the request and the answer. What was answered before the request bounds these positions from below, and
 * what was sent after the answer from above.
 */
import { createPublicKey, verify } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { ReceiptClaims, ReceiptKeys } from '@workspace-wallet/contract'
import { Books, type Hold, holdRecordOf, keyLimits, type Movement, type Outcome, textOf } from './books.ts'
import type { Answer, HoldCreation, Posting, Request, WalletCreation } from './requests.ts'
import type { LoggedEvent, TransferMacs } from './world.ts'

/** A time of the clock, in milliseconds, and one of a logical clock without duplicates. */
export type Moment = { time: number; tick: number }
export type Exchange = { request: Request; answer: Answer; sent: Moment; answered: Moment }

export type Found = {
  log: LoggedEvent[]
  orders: Record<string, unknown>[]
  /** The flows of each wallet, by its ID, in order of their sequence. */
  flows: Map<string, Record<string, unknown>[]>
  receiptKeys: ReceiptKeys
  /** By transferId. */
  macs: Map<string, TransferMacs>
}

/** The requests that were answered with what one event made. The event took effect between `sent` and `answered`. */
type Source = { requests: Request[]; sent: Moment; answered: Moment }
/** An answer whose position is not found yet. `last`: the answer of the model at the last position that was tried. */
type Pending = { exchange: Exchange; low: number; high: number; last?: Outcome }

export class History {
  readonly #exchanges: Exchange[]
  readonly #found: Found
  readonly #books = new Books(keyLimits)
  readonly #sources = new Map<string, Source>()
  readonly #contradictions: string[] = []

  constructor(exchanges: Exchange[], found: Found) {
    this.#exchanges = exchanges
    this.#found = found
  }

  /** All contradictions, one sentence each. */
  check(): string[] {
    for (const exchange of this.#exchanges) this.#addSources(exchange)
    this.#checkLog()
    this.#checkBatches()
    this.#checkRepeatedReads()
    this.#checkReceipts()
    this.#replay()
    this.#checkEnd()
    return this.#contradictions
  }

  #contradiction(sentence: string, ...about: unknown[]): void {
    this.#contradictions.push([sentence, ...about.map(each => JSON.stringify(each))].join(' '))
  }

  #addSources({ request, answer, sent, answered }: Exchange): void {
    for (const [key, made] of madeBy(request, answer)) {
      const source = this.#sources.get(key)
      if (!source) {
        this.#sources.set(key, { requests: [made], sent, answered })
        continue
      }
      source.requests.push(made)
      if (sent.tick < source.sent.tick) source.sent = sent
      if (answered.tick < source.answered.tick) source.answered = answered
    }
  }

  /** Positions are 1, 2, 3 …; times never run back, and are those of the requests. Answers come in the order of the log. */
  #checkLog(): void {
    const ids = new Set(this.#found.log.map(({ eventId }) => eventId))
    if (ids.size < this.#found.log.length) this.#contradiction('an eventId is repeated')
    let before: LoggedEvent | undefined
    let latestSent = 0
    for (const [at, event] of this.#found.log.entries()) {
      if (event.position !== at + 1) this.#contradiction(`position ${at + 1} is missing before`, event)
      if (before && event.timestamp < before.timestamp) this.#contradiction('time runs back at', event)
      before = event
      const source = this.#sources.get(keyOf(event))
      if (!source) {
        if (event.type !== 'hold.expired') this.#contradiction('nobody asked for', event)
        continue
      }
      const time = Date.parse(event.timestamp)
      if (time < source.sent.time || time > source.answered.time)
        this.#contradiction('an event was not posted between request and answer:', event, source)
      if (source.answered.tick < latestSent)
        this.#contradiction('an event was answered before the request of an earlier event:', event)
      latestSent = Math.max(latestSent, source.sent.tick)
    }
  }

  /** The transfers of a batch are next to one another, in the order of its items. */
  #checkBatches(): void {
    const requested = new Set(
      this.#exchanges.flatMap(({ request, answer }) =>
        request.kind === 'batch' && answer.data ? [String(madeBy(request, answer).map(([id]) => id))] : [],
      ),
    )
    const batches = Map.groupBy(this.#found.log, ({ data }) => data.transfer?.batchId ?? null)
    for (const [batchId, events] of batches) {
      if (batchId === null) continue
      const ids = events.map(({ data }) => data.transfer.transferId)
      const isWhole =
        ids[0] === batchId &&
        requested.has(String(ids)) &&
        new Set(events.map(({ timestamp }) => timestamp)).size === 1 &&
        events.every(({ position }, at) => position === events[0]!.position + at)
      if (!isWhole) this.#contradiction('a batch is not whole:', events)
    }
  }

  /** Past balances, statements and receipts have the same bytes whenever they are read. */
  #checkRepeatedReads(): void {
    const first = new Map<string, string>()
    for (const { request, answer } of this.#exchanges) {
      if (request.kind !== 'read' || answer.code !== '2000') continue
      const { what } = request
      if (what !== 'balanceAt' && what !== 'statement' && what !== 'receipt') continue
      // A receipt is read by transferId or bizId.
      const key = what === 'receipt' ? claimsOf(answer).transferId : JSON.stringify(request)
      const text = JSON.stringify(answer.data)
      const before = first.get(key)
      if (before === undefined) first.set(key, text)
      else if (before !== text) this.#contradiction('an answer has changed:', request, before, text)
    }
  }

  /** Published keys have signed the receipts, and their MACs are those of the ledger. The replay compares the other claims. */
  #checkReceipts(): void {
    const { receiptKeys, macs, log } = this.#found
    const keys = new Map(
      receiptKeys.keys.map(jwk => [jwk.kid, createPublicKey({ key: { ...jwk }, format: 'jwk' })] as const),
    )
    for (const { request, answer } of this.#exchanges) {
      if (request.kind !== 'read' || request.what !== 'receipt' || answer.code !== '2000') continue
      const { signed, signature, keyId } = partsOf(answer)
      const key = keys.get(keyId)
      if (!key || !verify(null, Buffer.from(signed), key, signature))
        this.#contradiction('no published key has signed', answer.data)
      const { workspaceId, transferId, source, target } = claimsOf(answer)
      const isOfLedger =
        workspaceId === log[0]!.workspaceId &&
        isDeepStrictEqual({ source: source.mac, target: target.mac }, macs.get(transferId))
      if (!isOfLedger) this.#contradiction('the ledger has another workspace or MAC than', claimsOf(answer))
    }
  }

  #replay(): void {
    const unanswered = this.#bounded().sort((a, b) => b.low - a.low)
    let pending: Pending[] = []
    for (let position = 0; position <= this.#found.log.length; position++) {
      // After an event that is wrong, the model no longer has the state of the system.
      if (position > 0 && !this.#apply(this.#found.log[position - 1]!)) return
      while (unanswered.at(-1)?.low === position) pending.push(unanswered.pop()!)
      pending = pending.filter(each => {
        if (this.#isAnswered(each)) return false
        if (each.high > position) return true
        this.#contradiction(`no position from ${each.low} to ${each.high} explains`, each.exchange, each.last)
        return false
      })
    }
  }

  /** The exchanges, each with the positions at which it can have been answered. */
  #bounded(): Pending[] {
    const bounds = this.#found.log.flatMap(event => {
      const source = this.#sources.get(keyOf(event))
      return source ? [{ position: event.position, sent: source.sent.tick, answered: source.answered.tick }] : []
    })
    // S002: the request was certainly not carried out, whatever the state.
    const answered = this.#exchanges.filter(({ answer }) => answer.code !== 'S002')
    return answered.map(exchange => {
      const before = bounds.findLast(each => each.answered < exchange.sent.tick)
      const after = bounds.find(each => each.sent > exchange.answered.tick)
      return { exchange, low: before?.position ?? 0, high: (after?.position ?? this.#found.log.length + 1) - 1 }
    })
  }

  /** Whether the answer is that of the model now, at some time between request and answer. */
  #isAnswered(pending: Pending): boolean {
    const { request, answer, sent, answered } = pending.exchange
    const named = nameUnnamed(request, answer)
    const times = [sent.time, ...midnights(sent.time, answered.time), ...this.#books.expiries(sent.time, answered.time)]
    return times.some(time => {
      const outcome = this.#books.answer(named, time)
      pending.last = outcome
      if (outcome === 'new' || outcome.code !== answer.code) return false
      if ('data' in outcome)
        return isDeepStrictEqual(comparable(request, answer.data), comparable(request, outcome.data))
      return (outcome.index ?? null) === answer.index
    })
  }

  /** Carries out what an event says. Returns whether that is allowed now, and comes to the same data. */
  #apply(event: LoggedEvent): boolean {
    if (event.type === 'hold.expired') return this.#expire(event)
    const request = this.#sources.get(keyOf(event))?.requests.find(each => isFrom(each, event))
    if (!request) {
      this.#contradiction('no request explains', event)
      return false
    }
    const outcome = this.#books.answer(request, Date.parse(event.timestamp))
    if (outcome !== 'new') {
      this.#contradiction(`${JSON.stringify(outcome)} should have been the answer to`, request, event)
      return false
    }
    return this.#expectData(event, this.#carryOut(request, event))
  }

  #expectData(event: LoggedEvent, expected: unknown): boolean {
    const isExpected = isDeepStrictEqual(event.data, expected)
    if (!isExpected) this.#contradiction('an event is not that of the model:', event, expected)
    return isExpected
  }

  #carryOut(request: Request, { type, data, timestamp: at, position }: LoggedEvent): unknown {
    switch (type) {
      case 'hold.created':
        return { hold: holdRecordOf(this.#books.hold(request as HoldCreation, { id: data.hold.holdId, at })) }
      case 'hold.released': {
        const hold = this.#books.holds.get(data.hold.holdId)!
        return { hold: holdRecordOf(this.#books.end(hold, 'RELEASED', at)) }
      }
      case 'wallet.created':
        return changeOf(this.#books.createWallet(request as WalletCreation, { id: data.walletId, at }), data.by)
      case 'wallet.frozen':
      case 'wallet.unfrozen':
      case 'wallet.closed': {
        const { walletId, status, by } = data
        return changeOf(this.#books.changeStatus({ kind: 'status', by, walletId, status }), by)
      }
      default: {
        const { transferId: id, batchId = null } = data.transfer ?? data.funding
        return this.#eventDataOf(this.#books.post(request as Posting, { id, at, position, batchId }))
      }
    }
  }

  #eventDataOf(movement: Movement): unknown {
    const { currency, balances, holdRemaining } = movement
    const { reversedAmount: _, ...record } = this.#books.recordOf(movement)
    return {
      [movement.type === 'TRANSFER' ? 'transfer' : 'funding']: record,
      balances,
      holdRemaining: holdRemaining === null ? null : textOf(holdRemaining, currency),
    }
  }

  #expire(event: LoggedEvent): boolean {
    const hold: Hold | undefined = this.#books.holds.get(event.data.hold.holdId)
    if (hold?.status === 'OPEN' && hold.expiresAt <= event.timestamp)
      return this.#expectData(event, { hold: holdRecordOf(this.#books.end(hold, 'EXPIRED', hold.expiresAt)) })
    this.#contradiction('a hold expired that was not open and due:', event, hold?.status)
    return false
  }

  /** What the lists show at the end. */
  #checkEnd(): void {
    const { movements, orders, flows, wallets } = this.#books
    const expected = orders.map(id => this.#books.recordOf(movements.get(id)!))
    this.#compare('order', this.#found.orders, expected)
    for (const walletId of wallets.keys()) {
      const found = this.#found.flows.get(walletId) ?? []
      const withoutIds = found.map(({ flowId: _, ...flow }) => flow)
      this.#compare(`flow of ${walletId}`, withoutIds, flows.get(walletId) ?? [])
    }
  }

  #compare(what: string, found: unknown[], expected: unknown[]): void {
    const longest = Math.max(found.length, expected.length)
    const at = Array.from({ length: longest }).findIndex(
      (_, place) => !isDeepStrictEqual(found[place], expected[place]),
    )
    if (at >= 0) this.#contradiction(`${what} ${at + 1} is not that of the model:`, found[at], expected[at])
  }
}

/** The last midnight of UTC up to `to`, if it is after `from`: limits per day begin again. */
function midnights(from: number, to: number): number[] {
  const midnight = new Date(to).setUTCHours(0, 0, 0, 0)
  return midnight > from ? [midnight] : []
}

/** What the answer to a request names, by the key of its event, with the request or item that asked for it. */
function madeBy(request: Request, { code, data }: Answer): [key: string, Request][] {
  if (code !== '2000' || data === null) return []
  switch (request.kind) {
    case 'read':
      return []
    case 'batch': {
      const made = data.transfers as { transferId: string }[]
      return made.map(({ transferId }, at) => [transferId, request.transfers[at]!])
    }
    case 'hold':
      return [[String(data.holdId), request]]
    case 'release':
      return [[`release of ${data.holdId}`, request]]
    case 'wallet':
      return [[String(data.walletId), request]]
    case 'status':
      // A wallet that had the status already has another time, and no event.
      return [[`${request.status} ${request.by} ${data.walletId} ${data.updatedAt}`, request]]
    default:
      return [[String(data.transferId), request]]
  }
}

function keyOf({ type, data, timestamp }: LoggedEvent): string {
  if (type === 'hold.created') return data.hold.holdId
  if (type === 'hold.released') return `release of ${data.hold.holdId}`
  if (type === 'wallet.created') return data.walletId
  if (type.startsWith('wallet.') && 'status' in data) return `${data.status} ${data.by} ${data.walletId} ${timestamp}`
  return (data.transfer ?? data.funding)?.transferId ?? ''
}

/** Of several requests under one bizId, the first one was carried out: amount and reference are as it was sent. */
function isFrom(request: Request, { data }: LoggedEvent): boolean {
  const record = data.transfer ?? data.funding ?? data.hold
  if (!('amount' in request)) return true
  const reference = 'reference' in request ? request.reference : undefined
  return request.amount === record.amount && (reference ?? null) === (record.reference ?? null)
}

/** A request without a bizId is looked up by what it made. */
function nameUnnamed(request: Request, { data }: Answer): Request {
  if (request.kind === 'transfer' && request.bizId === undefined && data)
    return { ...request, bizId: String(data.transferId) }
  if (request.kind === 'wallet' && request.bizId === undefined && data)
    return { kind: 'read', what: 'wallet', id: String(data.walletId) }
  return request
}

/**
 * The claims of a receipt without what the model does not have. A wallet without the time of its last change, and for
 * operators without its balance, which is not text.
 */
function comparable(request: Request, data: Record<string, unknown> | null): unknown {
  if (!data) return data
  if (request.kind === 'read') {
    if (request.what === 'receipt') return 'receipt' in data ? modelledClaimsOf(data) : data
    if (request.what !== 'wallet' && request.what !== 'balance') return data
  } else if (!('by' in request)) return data
  const { updatedAt: _, ...record } = data
  if ('by' in request && request.by === 'OPERATOR') delete record.balance
  return record
}

type ReceiptData = Pick<Answer, 'data'>

function partsOf({ data }: ReceiptData) {
  const [header, payload, signature] = String(data!.receipt).split('.') as [string, string, string]
  const decode = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString())
  return {
    keyId: decode(header).kid as string,
    claims: decode(payload) as ReceiptClaims,
    signed: `${header}.${payload}`,
    signature: Buffer.from(signature, 'base64url'),
  }
}

function claimsOf(answer: ReceiptData): ReceiptClaims {
  return partsOf(answer).claims
}

function modelledClaimsOf(data: Record<string, unknown>): object {
  const { workspaceId: _, source, target, ...claims } = claimsOf({ data })
  return { ...claims, source: { sequence: source.sequence }, target: { sequence: target.sequence } }
}

function changeOf({ walletId, bizId, currency, status }: Record<string, unknown>, by: string): unknown {
  return { walletId, bizId, currency, status, by }
}
