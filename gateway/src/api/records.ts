import {
  type Flow,
  formatBalance,
  type TransferOrder,
  type Wallet,
  type WalletBalance,
} from '@workspace-wallet/contract'

/** The public records: what core says, with amounts as text. Times become ISO 8601 by themselves. */

export function walletRecord(wallet: Wallet) {
  return { ...wallet, balance: formatBalance(wallet.balance, wallet.currency) }
}

export function balanceRecord(balance: WalletBalance) {
  const { currency } = balance
  return {
    ...balance,
    balance: formatBalance(balance.balance, currency),
    available: formatBalance(balance.available, currency),
  }
}

export function flowRecord(flow: Flow) {
  return { ...flow, balanceAfter: formatBalance(flow.balanceAfter, flow.currency) }
}

export function completionRecord({ transferId, bizId, status }: TransferOrder) {
  return { transferId, bizId, status, completed: status === 'COMPLETED' }
}
