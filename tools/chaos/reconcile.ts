/** Compares the orders, holds and balances of the service with the responses that clients got. */
import { amountOf, centsOf, type Order } from './commands.ts'
import type { Sent, Tenant } from './traffic.ts'

/** An order in a list. */
export type ListedOrder = Order & { transferId: string; reversesTransferId: string | null; reversedAmount: string }
/** A hold in a list. */
export type ListedHold = {
  bizId: string
  walletId: string
  amount: string
  capturedAmount: string
  remainingAmount: string
  status: string
}
export type Balance = { balance: string; held: string }
/** All orders and holds of a workspace, and the balance of each wallet, read through the API. */
export type Found = { orders: ListedOrder[]; holds: ListedHold[]; balances: Map<string, Balance> }

/** Each sentence names a command or a wallet, and what is wrong with it. */
export type Discrepancies = { lost: string[]; duplicated: string[]; unexplained: string[] }

/** A hold as the acknowledged commands leave it. */
type ExpectedHold = { walletId: string; amount: string; captured: bigint; status: string }

/** @param sent the commands of this tenant; no outcome is open or unknown */
export function reconcile(tenant: Tenant, sent: readonly Sent[], found: Found): Discrepancies {
  const discrepancies: Discrepancies = { lost: [], duplicated: [], unexplained: [] }
  compareOrders(sent, found, discrepancies)
  compareReversals(sent, found, discrepancies)
  compareHolds(sent, found, discrepancies)
  compareBalances(tenant, sent, found, discrepancies)
  return discrepancies
}

function compareOrders(sent: readonly Sent[], { orders }: Found, to: Discrepancies): void {
  const listedByBizId = Map.groupBy(orders, ({ bizId }) => bizId)
  for (const { command, state, ids } of sent)
    for (const [at, order] of command.orders.entries()) {
      const listed = listedByBizId.get(order.bizId) ?? []
      listedByBizId.delete(order.bizId)
      if (state === 'acknowledged') {
        if (listed.length === 0) to.lost.push(`${order.bizId} was acknowledged and does not exist`)
        if (listed.some(each => each.transferId !== ids[at]))
          to.duplicated.push(`${order.bizId} was acknowledged as ${ids[at]} and is a different transfer`)
      } else if (listed.length > 0) {
        to.unexplained.push(`${order.bizId} was ${state} and exists`)
      }
      if (listed.length > 1) to.duplicated.push(`${order.bizId} exists ${listed.length} times`)
      for (const each of listed)
        for (const [field, value] of Object.entries(order))
          if (each[field as keyof Order] !== value) to.unexplained.push(`${order.bizId} has a different ${field}`)
    }
  for (const bizId of listedByBizId.keys()) to.unexplained.push(`${bizId} exists and was never sent`)
}

function compareReversals(sent: readonly Sent[], { orders }: Found, to: Discrepancies): void {
  const listed = new Map(orders.map(order => [order.bizId, order]))
  const reversedCents = new Map<string, bigint>()
  for (const { command } of acknowledged(sent))
    for (const [at, original] of command.reverses.entries()) {
      const order = command.orders[at]!
      const transferId = original === null ? null : listed.get(original)?.transferId
      const shown = listed.get(order.bizId)
      if (shown && shown.reversesTransferId !== transferId)
        to.unexplained.push(`${order.bizId} reverses ${shown.reversesTransferId} and not ${transferId}`)
      if (original !== null) reversedCents.set(original, (reversedCents.get(original) ?? 0n) + centsOf(order.amount))
    }
  for (const { bizId, reversedAmount } of orders) {
    const expected = amountOf(reversedCents.get(bizId) ?? 0n)
    if (reversedAmount !== expected)
      to.unexplained.push(`${bizId} has a reversedAmount of ${reversedAmount}, and its reversals give ${expected}`)
  }
}

function compareHolds(sent: readonly Sent[], { holds }: Found, to: Discrepancies): void {
  const expected = expectedHolds(sent)
  const listedByBizId = Map.groupBy(holds, ({ bizId }) => bizId)
  for (const [bizId, { walletId, amount, captured, status }] of expected) {
    const [listed, ...others] = listedByBizId.get(bizId) ?? []
    listedByBizId.delete(bizId)
    if (others.length > 0) to.duplicated.push(`hold ${bizId} exists ${others.length + 1} times`)
    if (!listed) {
      to.lost.push(`hold ${bizId} was acknowledged and does not exist`)
      continue
    }
    const rest = status === 'OPEN' ? centsOf(amount) - captured : 0n
    const fields = { walletId, amount, status, capturedAmount: amountOf(captured), remainingAmount: amountOf(rest) }
    for (const [field, value] of Object.entries(fields))
      if (listed[field as keyof ListedHold] !== value)
        to.unexplained.push(`hold ${bizId} has the ${field} ${listed[field as keyof ListedHold]} and not ${value}`)
  }
  for (const bizId of listedByBizId.keys())
    to.unexplained.push(`hold ${bizId} exists, and was not acknowledged to anybody`)
}

/** Commands about one hold are sent one after the other. */
function expectedHolds(sent: readonly Sent[]): Map<string, ExpectedHold> {
  const holds = new Map<string, ExpectedHold>()
  for (const { command } of acknowledged(sent)) {
    const change = command.holdChange
    if (change?.kind === 'create') {
      const { walletId, amount, isShort } = change
      holds.set(change.bizId, { walletId, amount, captured: 0n, status: isShort ? 'EXPIRED' : 'OPEN' })
    } else if (change) {
      const hold = holds.get(change.bizId)!
      if (change.kind === 'release') hold.status = 'RELEASED'
      else {
        hold.captured += centsOf(change.amount)
        if (!change.keepsRest || hold.captured === centsOf(hold.amount)) hold.status = 'CAPTURED'
      }
    }
  }
  return holds
}

function compareBalances(
  { wallets, empty }: Tenant,
  sent: readonly Sent[],
  { holds, balances }: Found,
  to: Discrepancies,
): void {
  const expected = new Map([...wallets, empty].map(({ walletId, cents }) => [walletId, cents]))
  for (const { command } of acknowledged(sent))
    for (const { sourceWalletId, targetWalletId, amount } of command.orders) {
      expected.set(sourceWalletId, expected.get(sourceWalletId)! - centsOf(amount))
      expected.set(targetWalletId, expected.get(targetWalletId)! + centsOf(amount))
    }
  for (const [walletId, cents] of expected) {
    const found = balances.get(walletId)
    if (found === undefined || centsOf(found.balance) !== cents)
      to.unexplained.push(`${walletId} has a balance of ${found?.balance}, and its transfers give ${cents} cents`)
    const held = holds
      .filter(hold => hold.walletId === walletId)
      .reduce((sum, { remainingAmount }) => sum + centsOf(remainingAmount), 0n)
    if (found && centsOf(found.held) !== held)
      to.unexplained.push(`${walletId} holds ${found.held}, and its holds reserve ${held} cents`)
  }
}

function acknowledged(sent: readonly Sent[]): Sent[] {
  return sent.filter(({ state }) => state === 'acknowledged')
}
