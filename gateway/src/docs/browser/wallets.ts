import type { Credentials } from '@workspace-wallet/client/signing'
import { type Exchange, exchange } from './exchange.ts'
import type { Wallet } from './suggestions.ts'

type WalletPage = { content: Wallet[]; page: { totalElements: number; totalPages: number } }

/** A page in a browser offers no more than these. */
const mostWallets = 5000
const pageSize = 100

/**
 * All wallets of the workspace, the oldest first, so that those that a workspace began with come first.
 *
 * @returns the wallets and how many there are, or the first response if it is a failure. After a later failure, such as
 * that of a rate limit, the wallets are those that were read before.
 */
export async function readWallets(
  signer: Credentials,
): Promise<{ wallets: Wallet[]; total: number } | { failure: Exchange }> {
  const wallets: Wallet[] = []
  let total = 0
  for (let page = 0; page * pageSize < mostWallets; page++) {
    const answer = await exchange(signer, 'GET', `/api/v1/wallets?size=${pageSize}&page=${page}&sort=createdAt,asc`)
    if (!answer.envelope?.success) {
      if (page === 0) return { failure: answer }
      break
    }
    const data = answer.envelope.data as WalletPage
    wallets.push(...data.content)
    total = data.page.totalElements
    if (page + 1 >= data.page.totalPages) break
  }
  return { wallets, total }
}

/** These wallets as they are now. Those that cannot be read are left out. */
export async function readEach(signer: Credentials, walletIds: readonly string[]): Promise<Wallet[]> {
  const answers = await Promise.all(
    walletIds.map(id => exchange(signer, 'GET', `/api/v1/wallets/${encodeURIComponent(id)}`).catch(() => undefined)),
  )
  return answers.flatMap(answer => (answer?.envelope?.success ? [answer.envelope.data as Wallet] : []))
}
