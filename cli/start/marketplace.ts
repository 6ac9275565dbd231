/** A second demo workspace: a small marketplace, with enough history that every page of the console shows something. */
import { scopes } from '@workspace-wallet/contract'
import { type CoreClient, createCoreClient } from '@workspace-wallet/core-client'

const caller = { requestId: 'demo-marketplace' }
const userId = 'demo'

/** Names as customers write them. `funds`: what the wallet is funded with from outside. */
const walletPlans = [
  { name: 'Fees', currency: 'EUR', funds: null },
  { name: 'Café Zürich', currency: 'EUR', funds: null },
  { name: '北京书店', currency: 'EUR', funds: null },
  { name: 'Ada Lovelace', currency: 'EUR', funds: '420.00' },
  { name: 'Grace Hopper', currency: 'EUR', funds: '1250.50' },
  { name: 'مريم المطيري', currency: 'EUR', funds: '186.40' },
  { name: 'Payouts', currency: 'USD', funds: '98000.00' },
  { name: 'Tokyo branch', currency: 'JPY', funds: '1500000' },
] as const
type WalletName = (typeof walletPlans)[number]['name']

const goods = ['coffee beans', 'a book of poems', 'two cups', 'an atlas', 'a grinder', 'tea']
const sellers: readonly WalletName[] = ['Café Zürich', '北京书店']
const buyers: readonly WalletName[] = ['Ada Lovelace', 'Grace Hopper', 'مريم المطيري']
const sales = 18

/** Creates the marketplace in less than a second. `serviceToken` makes its transfers, as its API key would. */
export async function createMarketplace(coreUrl: string, tokens: { adminToken: string; serviceToken: string }) {
  const admin = createCoreClient({ url: coreUrl, token: tokens.adminToken })
  const service = createCoreClient({ url: coreUrl, token: tokens.serviceToken })
  try {
    const { workspaceId } = await admin.workspaces.create.mutate({ name: 'Demo marketplace' })
    await admin.members.add.mutate({ workspaceId, userId })
    const [wallets] = await Promise.all([createWallets(admin, workspaceId), createKeys(admin, workspaceId)])
    await sell(service, workspaceId, wallets)
    await reserve(service, workspaceId, wallets)
    await administer(admin, service, workspaceId, wallets)
    return { workspaceId }
  } finally {
    await Promise.all([admin.close(), service.close()])
  }
}

type Wallets = Record<WalletName, string>

async function createWallets(admin: CoreClient, workspaceId: string): Promise<Wallets> {
  const created = await Promise.all(
    walletPlans.map(async ({ name, currency, funds }, at) => {
      const { walletId } = await admin.wallets.create.mutate({
        workspaceId,
        name,
        currency,
        bizId: `demo-wallet-${at}`,
      })
      if (funds)
        await admin.wallets.deposit.mutate({ workspaceId, walletId, amount: funds, bizId: `demo-top-up-${at}`, caller })
      return [name, walletId] as const
    }),
  )
  return Object.fromEntries(created) as Wallets
}

async function createKeys(admin: CoreClient, workspaceId: string): Promise<void> {
  const ownerUserId = userId
  await admin.apiKeys.create.mutate({ workspaceId, ownerUserId, name: 'Shop', scopes: [...scopes] })
  await admin.apiKeys.create.mutate({
    workspaceId,
    ownerUserId,
    name: 'Bookkeeping',
    scopes: ['wallet:read', 'transfer:read', 'event:read'],
    ipAllowlist: ['192.0.2.0/24', '2001:db8::/32'],
  })
}

/** Each sale pays the seller and a fee, in one batch; the last one is reversed in part. */
async function sell(service: CoreClient, workspaceId: string, wallets: Wallets): Promise<void> {
  for (let sale = 0; sale < sales; sale++) {
    const [buyer, seller] = [buyers[sale % buyers.length]!, sellers[sale % sellers.length]!]
    const order = { currency: 'EUR', sourceWalletId: wallets[buyer], reference: `order-${1001 + sale}` }
    const remark = goods[sale % goods.length]!
    await service.transfers.batch.mutate({
      workspaceId,
      caller,
      batch: {
        transfers: [
          { ...order, targetWalletId: wallets[seller], amount: `${4 + sale}.90`, bizId: `demo-sale-${sale}`, remark },
          { ...order, targetWalletId: wallets.Fees, amount: '0.35', bizId: `demo-fee-${sale}` },
        ],
      },
    })
  }
  const reversal = { currency: 'EUR', amount: '5.00', bizId: 'demo-refund', remark: 'one cup was broken' }
  const reversesTransferId = `demo-sale-${sales - 1}`
  await service.transfers.reverse.mutate({ workspaceId, caller, reversal: { ...reversal, reversesTransferId } })
}

/** A hold that is open, one that was captured, and one that was released. */
async function reserve(service: CoreClient, workspaceId: string, wallets: Wallets): Promise<void> {
  const walletId = wallets['Grace Hopper']
  const hold = (bizId: string, amount: string) => ({
    workspaceId,
    caller,
    hold: { walletId, amount, currency: 'EUR', expiresInSeconds: 7 * 86_400, bizId, reference: 'table-12' },
  })
  await service.holds.create.mutate(hold('demo-hold-open', '120.00'))
  await service.holds.create.mutate(hold('demo-hold-captured', '60.00'))
  const order = { sourceWalletId: walletId, targetWalletId: wallets['Café Zürich'], amount: '48.20', currency: 'EUR' }
  const capture = { ...order, bizId: 'demo-capture', holdId: 'demo-hold-captured' }
  await service.transfers.create.mutate({ workspaceId, caller, order: capture })
  await service.holds.create.mutate(hold('demo-hold-released', '15.00'))
  await service.holds.release.mutate({ workspaceId, caller, holdId: 'demo-hold-released' })
}

/** What operators do: a payout, a limit, a frozen wallet; and a webhook that is paused, because nothing listens. */
async function administer(
  admin: CoreClient,
  service: CoreClient,
  workspaceId: string,
  wallets: Wallets,
): Promise<void> {
  const payout = { workspaceId, walletId: wallets.Payouts, amount: '1250.00', bizId: 'demo-payout', caller }
  await admin.wallets.withdraw.mutate(payout)
  const limit = { perTransfer: '500.00', perDay: '2000.00', currency: 'EUR' }
  await admin.limits.set.mutate({ workspaceId, subject: { walletId: wallets['Grace Hopper'] }, ...limit })
  await admin.wallets.changeStatus.mutate({ workspaceId, walletId: wallets['مريم المطيري'], status: 'FROZEN' })
  const url = 'https://shop.example/events'
  const { webhookId } = await service.webhooks.create.mutate({ workspaceId, caller, url, bizId: 'demo-webhook' })
  await service.webhooks.update.mutate({ workspaceId, caller, webhookId, status: 'PAUSED' })
}
