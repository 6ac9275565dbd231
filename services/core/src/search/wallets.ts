import type { FilterQuery } from '@mikro-orm/core'
import type { FoundWallet, FoundWallets, WalletSearch } from '@workspace-wallet/contract'
import type { Em } from '../database/orm.ts'
import { isGenuine } from '../database/row-signer.ts'
import { idToFind } from '../database/types.ts'
import { mergePages } from '../places/merge.ts'
import { Wallet } from '../wallets/entities.ts'
import { beginsWith, between } from './conditions.ts'

/**
 * A page of the customers' wallets that match, newest first: IDs sort by time. Names and IDs have an index over all workspaces, and
 * so has the order; anything else is compared wallet by wallet, until the page is full.
 */
export async function searchWallets(em: Em, search: WalletSearch): Promise<FoundWallets> {
  const { workspaceId, walletId, bizId, namePrefix, currency, status, balanceFrom, balanceTo, after, limit } = search
  const ids = [
    ...(walletId === undefined ? [] : [{ $eq: idToFind('wallet', walletId) }]),
    ...(after === undefined ? [] : [{ $lt: idToFind('wallet', after) }]),
  ]
  const where: FilterQuery<Wallet> = {
    kind: 'CUSTOMER',
    ...(workspaceId !== undefined && { workspaceId: idToFind('workspace', workspaceId) }),
    ...(ids.length > 0 && { $and: ids.map(id => ({ id })) }),
    ...(bizId !== undefined && { bizId }),
    ...(namePrefix !== undefined && { name: beginsWith(namePrefix) }),
    ...(currency !== undefined && { currency }),
    ...(status !== undefined && { status }),
    ...((balanceFrom || balanceTo) && { balance: between(balanceFrom, balanceTo) }),
  }
  const found = await em.find(Wallet, where, { orderBy: { id: 'desc' }, limit: limit + 1 })
  const wallets = found.slice(0, limit).map(toFound)
  return { wallets, next: found.length > limit ? wallets.at(-1)!.walletId : null }
}

/** A page of the wallets of all places: their order, and where a page begins, are the same in all. */
export function mergeWallets(pages: readonly FoundWallets[], limit: number): FoundWallets {
  const inAll = pages.map(({ wallets: items, next }) => ({ items, next }))
  const { items, hasMore } = mergePages(inAll, limit, (a, b) => (a.walletId < b.walletId ? 1 : -1))
  return { wallets: items, next: hasMore ? items.at(-1)!.walletId : null }
}

export function toFound(wallet: Wallet): FoundWallet {
  const { workspaceId, id, name, currency, status, balance, held, createdAt, updatedAt } = wallet
  const { bizId = null, frozenBy = null } = wallet
  const isModified = !isGenuine(wallet)
  return {
    workspaceId,
    walletId: id,
    bizId,
    name,
    currency,
    status,
    frozenBy,
    balance,
    held,
    createdAt,
    updatedAt,
    isModified,
  }
}
