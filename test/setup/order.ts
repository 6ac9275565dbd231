import type { System } from './system.ts'

/** The body of a create: one cent from the first wallet of the system to the second, unless `changes` say otherwise. */
export function transferOrder({ wallets }: Pick<System, 'wallets'>, changes: object = {}) {
  const [source, target] = wallets
  return {
    sourceWalletId: source!.walletId,
    targetWalletId: target!.walletId,
    amount: '0.01',
    currency: 'USD',
    ...changes,
  }
}
