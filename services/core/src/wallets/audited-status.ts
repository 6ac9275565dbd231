import type { AuditAction, WalletStatus } from '@workspace-wallet/contract'

/** The status that a wallet has after each audited action that sets it. */
export const statusAfter = {
  'wallet.create': 'ACTIVE',
  'wallet.unfreeze': 'ACTIVE',
  'wallet.freeze': 'FROZEN',
  'wallet.close': 'CLOSED',
} as const satisfies Partial<Record<AuditAction, WalletStatus>>
