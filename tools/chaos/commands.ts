/** The commands that clients send, each with what it does to orders and holds. All amounts are in USD. */
import { randomUUID } from 'node:crypto'
import type { Random } from '../../cli/processes/random.ts'

export type Wallet = { walletId: string; cents: bigint }

export type Order = {
  bizId: string
  sourceWalletId: string
  targetWalletId: string
  amount: string
  currency: string
}

export type Command = {
  path: string
  body: object
  /** The GET that tells whether it was carried out, and the code if it was not. */
  lookUp: { target: string; absent: 'T001' | 'H001' }
  /** The orders that it makes. */
  orders: Order[]
  /** The bizId of the order that each of these reverses, if any. */
  reverses: (string | null)[]
  holdChange: HoldChange | null
}

export type HoldChange =
  | { kind: 'create'; bizId: string; walletId: string; amount: string; isShort: boolean }
  | { kind: 'draw'; bizId: string; amount: string; keepsRest: boolean }
  | { kind: 'release'; bizId: string }

export const createPath = '/api/v1/transfer/command/create'
const currency = 'USD'
const longSeconds = 31_536_000

export function centsOf(amount: string): bigint {
  return BigInt(amount.replace('.', ''))
}

export function amountOf(cents: number | bigint): string {
  const digits = String(cents).padStart(3, '0')
  return `${digits.slice(0, -2)}.${digits.slice(-2)}`
}

export function orderBetween(source: Wallet, target: Wallet, cents: number): Order {
  const [sourceWalletId, targetWalletId] = [source.walletId, target.walletId]
  return { bizId: randomUUID(), sourceWalletId, targetWalletId, amount: amountOf(cents), currency }
}

export function transfer(order: Order): Command {
  return {
    path: createPath,
    body: order,
    lookUp: lookUpOrder(order),
    orders: [order],
    reverses: [null],
    holdChange: null,
  }
}

/** Moves a part of an order back. */
export function reversal(original: Order, cents: number): Command {
  const order = reversed(original, cents)
  return {
    path: '/api/v1/transfer/command/reverse',
    body: reversalOf(order, original),
    lookUp: lookUpOrder(order),
    orders: [order],
    reverses: [original.bizId],
    holdChange: null,
  }
}

/** All orders or none. If `cents` is given, a last item moves that much of the first order back. */
export function batch(orders: Order[], cents: number | null): Command {
  const [first] = orders as [Order, ...Order[]]
  const back = cents === null ? [] : [reversed(first, cents)]
  return {
    path: '/api/v1/transfer/command/batch',
    body: { transfers: [...orders, ...back.map(order => reversalOf(order, first))] },
    lookUp: lookUpOrder(first),
    orders: [...orders, ...back],
    reverses: [...orders.map(() => null), ...back.map(() => first.bizId)],
    holdChange: null,
  }
}

/** A short hold expires during the run, a long one does not. */
export function hold({ walletId }: Wallet, cents: number, isShort: boolean, random: Random): Command {
  const bizId = randomUUID()
  const amount = amountOf(cents)
  const expiresInSeconds = isShort ? 1 + random.int(3) : longSeconds
  return {
    path: '/api/v1/hold/command/create',
    body: { walletId, amount, currency, expiresInSeconds, bizId },
    lookUp: lookUpHold(bizId),
    orders: [],
    reverses: [],
    holdChange: { kind: 'create', bizId, walletId, amount, isShort },
  }
}

/** A transfer that captures a hold of its source. */
export function draw(order: Order, holdId: string, keepsRest: boolean): Command {
  const holdRemainder = keepsRest ? 'KEEP' : 'RELEASE'
  return {
    ...transfer(order),
    body: { ...order, holdId, holdRemainder },
    holdChange: { kind: 'draw', bizId: holdId, amount: order.amount, keepsRest },
  }
}

export function release(holdId: string): Command {
  return {
    path: '/api/v1/hold/command/release',
    body: { holdId },
    lookUp: lookUpHold(holdId),
    orders: [],
    reverses: [],
    holdChange: { kind: 'release', bizId: holdId },
  }
}

/** What names a command in a report. */
export function nameOf({ orders: [order], holdChange }: Command): string {
  return order?.bizId ?? `the ${holdChange?.kind} of hold ${holdChange?.bizId}`
}

function reversed({ sourceWalletId, targetWalletId }: Order, cents: number): Order {
  const sides = { sourceWalletId: targetWalletId, targetWalletId: sourceWalletId }
  return { bizId: randomUUID(), ...sides, amount: amountOf(cents), currency }
}

function reversalOf({ bizId, amount }: Order, original: Order) {
  return { reversesTransferId: original.bizId, amount, currency, bizId }
}

function lookUpOrder({ bizId }: Order): Command['lookUp'] {
  return { target: `/api/v1/transfer/query/orders/${bizId}`, absent: 'T001' }
}

function lookUpHold(bizId: string): Command['lookUp'] {
  return { target: `/api/v1/hold/query/holds/${bizId}`, absent: 'H001' }
}
