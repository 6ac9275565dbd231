/**
 * A TypeScript service that calls core directly: it pays out what a wallet holds above a minimum. All types come from core
 * without code generation. It needs a service token of the role `service`.
 */

import { type CoreClient, Decimal, domainErrorOf, formatBalance } from '@workspace-wallet/core-client'

export type Payout = { workspaceId: string; walletId: string; targetWalletId: string; keep: string; day: string }

export type Outcome =
  | { paid: Decimal; transferId: string; at: Date }
  /** The balance is not above the minimum, or one of the wallets is frozen or closed. */
  | { paid: null; because: 'NOTHING_TO_PAY' | 'NOT_ACTIVE' }

/**
 * Pays out at most once per wallet and day, so it is safe to repeat.
 *
 * @param payout `day` in ISO 8601, such as 2026-11-20
 * @returns what this run paid, or what an earlier run of the same day paid
 * @throws TRPCClientError any other error of core, or a lost response: retry it
 */
export async function payOut(core: CoreClient, payout: Payout): Promise<Outcome> {
  const { workspaceId, walletId, targetWalletId } = payout
  // The bizId makes the payout idempotent: it names the wallet too, because bizIds are unique per workspace.
  const bizId = `payout-${payout.day}-${walletId}`
  // The same ID appears in the logs of every service involved.
  const caller = { requestId: bizId }
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
        bizId,
      },
    })
    return { paid: new Decimal(order.amount), transferId: order.transferId, at: order.createdAt }
  } catch (error) {
    switch (domainErrorOf(error)?.code) {
      case 'W002':
        return { paid: null, because: 'NOT_ACTIVE' }
      // An earlier run of today paid a different amount from this wallet. Return that payout.
      case 'T005': {
        const order = await core.transfers.get.query({ workspaceId, caller, bizId })
        return { paid: new Decimal(order.amount), transferId: order.transferId, at: order.createdAt }
      }
      default:
        throw error
    }
  }
}
