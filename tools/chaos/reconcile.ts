/** Compares the orders and balances of the service with the answers that clients got. */
import { centsOf, type Order, type Sent, type Tenant } from './traffic.ts'

/** An order in a list. */
export type ListedOrder = Order & { transferId: string }
/** All orders of a workspace, and the balance of each wallet, read through the API. */
export type Found = { orders: ListedOrder[]; balances: Map<string, string> }

/** Each sentence names a transfer or a wallet, and what is wrong with it. */
export type Discrepancies = { lost: string[]; duplicated: string[]; unexplained: string[] }

/** @param sent the transfers of this tenant; no outcome is open or unknown */
export function reconcile(
  { wallets, empty }: Tenant,
  sent: readonly Sent[],
  { orders, balances }: Found,
): Discrepancies {
  const discrepancies: Discrepancies = { lost: [], duplicated: [], unexplained: [] }
  const listedByBizId = Map.groupBy(orders, ({ bizId }) => bizId)
  const expected = new Map([...wallets, empty].map(({ walletId, cents }) => [walletId, cents]))
  for (const { order, state, transferId } of sent) {
    const listed = listedByBizId.get(order.bizId) ?? []
    listedByBizId.delete(order.bizId)
    if (state === 'acknowledged') {
      if (listed.length === 0) discrepancies.lost.push(`${order.bizId} was acknowledged and does not exist`)
      if (listed.some(each => each.transferId !== transferId))
        discrepancies.duplicated.push(`${order.bizId} was acknowledged as ${transferId} and is a different transfer`)
      const cents = centsOf(order.amount)
      expected.set(order.sourceWalletId, expected.get(order.sourceWalletId)! - cents)
      expected.set(order.targetWalletId, expected.get(order.targetWalletId)! + cents)
    } else if (listed.length > 0) {
      discrepancies.unexplained.push(`${order.bizId} was ${state} and exists`)
    }
    if (listed.length > 1) discrepancies.duplicated.push(`${order.bizId} exists ${listed.length} times`)
    for (const each of listed)
      for (const [field, value] of Object.entries(order))
        if (each[field as keyof Order] !== value)
          discrepancies.unexplained.push(`${order.bizId} has a different ${field}`)
  }
  for (const bizId of listedByBizId.keys()) discrepancies.unexplained.push(`${bizId} exists and was never sent`)
  for (const [walletId, cents] of expected) {
    const balance = balances.get(walletId)
    if (balance === undefined || centsOf(balance) !== cents)
      discrepancies.unexplained.push(`${walletId} has a balance of ${balance}, and its transfers give ${cents} cents`)
  }
  return discrepancies
}
