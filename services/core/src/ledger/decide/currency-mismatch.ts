import { DomainError } from '@workspace-wallet/contract'

/**
 * T003 if the request has another currency than the wallet or transfer that one of its fields names.
 *
 * @param currency of the request
 */
export function currencyMismatch(
  currency: string,
  { currency: held }: { currency: string },
  field: 'sourceWalletId' | 'targetWalletId' | 'walletId' | 'reversesTransferId',
): DomainError | null {
  return held === currency ? null : new DomainError('T003', { currency, field, held })
}
