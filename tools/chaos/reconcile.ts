/** Holds what the service keeps against what its clients were told. */
import { centsOf, type Order, type Sent, type Tenant } from './traffic.ts'

/** An order as a list shows it. */
export type Kept = Order & { transferId: string }
/** All orders of a workspace, and the balance of each wallet, as the API tells them. */
export type Found = { orders: Kept[]; balances: Map<string, string> }

/** Each entry names a transfer or a wallet, and what is wrong with it. */
export type Verdict = { lost: string[]; doubled: string[]; unexplained: string[] }

/** @param sent of this tenant, none of them open or unknown any more */
export function judge({ wallets, empty }: Tenant, sent: readonly Sent[], { orders, balances }: Found): Verdict {
  const verdict: Verdict = { lost: [], doubled: [], unexplained: [] }
  const keptByBizId = Map.groupBy(orders, ({ bizId }) => bizId)
  const expected = new Map([...wallets, empty].map(({ walletId, cents }) => [walletId, cents]))
  for (const { order, state, transferId } of sent) {
    const kept = keptByBizId.get(order.bizId) ?? []
    keptByBizId.delete(order.bizId)
    if (state === 'acknowledged') {
      if (kept.length === 0) verdict.lost.push(`${order.bizId} was acknowledged and is not there`)
      if (kept.some(each => each.transferId !== transferId))
        verdict.doubled.push(`${order.bizId} was acknowledged as ${transferId} and is another transfer`)
      const cents = centsOf(order.amount)
      expected.set(order.sourceWalletId, expected.get(order.sourceWalletId)! - cents)
      expected.set(order.targetWalletId, expected.get(order.targetWalletId)! + cents)
    } else if (kept.length > 0) {
      verdict.unexplained.push(`${order.bizId} was ${state} and is there`)
    }
    if (kept.length > 1) verdict.doubled.push(`${order.bizId} is there ${kept.length} times`)
    for (const each of kept)
      for (const [field, value] of Object.entries(order))
        if (each[field as keyof Order] !== value) verdict.unexplained.push(`${order.bizId} has another ${field}`)
  }
  for (const bizId of keptByBizId.keys()) verdict.unexplained.push(`${bizId} is there and was never sent`)
  for (const [walletId, cents] of expected) {
    const balance = balances.get(walletId)
    if (balance === undefined || centsOf(balance) !== cents)
      verdict.unexplained.push(`${walletId} has ${balance}, and its transfers leave ${cents} cents`)
  }
  return verdict
}
