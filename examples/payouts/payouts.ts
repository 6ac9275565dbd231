/**
 * A TypeScript service that works with core itself: it pays out whatever a wallet holds above what it must keep. All
 * types come from core, and nothing is generated. Its token is a service token of the role service.
 */
import { type CoreClient, domainErrorOf } from '@workspace-wallet/core/client'
import { Decimal, formatBalance } from '@workspace-wallet/core/contract'

export type Payout = { workspaceId: string; walletId: string; targetWalletId: string; keep: string; day: string }

export type Outcome =
  | { paid: Decimal; transferId: string; at: Date }
  /** There is nothing to pay, or the wallet does not take part for now. */
  | { paid: null; because: 'NOTHING_TO_PAY' | 'NOT_ACTIVE' }

/**
 * Safe to repeat: a payout has its name from its day, and is made once under it.
 *
 * @throws TRPCClientError whatever else core says, or that it did not answer: ask again
 */
export async function payOut(core: CoreClient, payout: Payout): Promise<Outcome> {
  const { workspaceId, walletId, targetWalletId } = payout
  // One id in the logs of all services that have a part in this.
  const caller = { requestId: `payout/${payout.day}` }
  const { balance, currency } = await core.wallets.balance.query({ workspaceId, walletId, caller })
  const amount = balance.minus(payout.keep)
  if (amount.lte(0)) return { paid: null, because: 'NOTHING_TO_PAY' }
  try {
    const order = await core.transfers.create.mutate({
      workspaceId,
      caller,
      order: {
        sourceWalletId: walletId,
        targetWalletId,
        amount: formatBalance(amount, currency),
        currency,
        bizId: `payout-${payout.day}`,
      },
    })
    return { paid: new Decimal(order.amount), transferId: order.transferId, at: order.createdAt }
  } catch (error) {
    switch (domainErrorOf(error)?.code) {
      case 'W002':
        return { paid: null, because: 'NOT_ACTIVE' }
      // Another run of today paid a different amount: what it did stands.
      case 'T005': {
        const order = await core.transfers.get.query({ workspaceId, caller, bizId: `payout-${payout.day}` })
        return { paid: new Decimal(order.amount), transferId: order.transferId, at: order.createdAt }
      }
      default:
        throw error
    }
  }
}
