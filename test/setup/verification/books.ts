import { randomUUID } from 'node:crypto'
import { idFromUuid, type Uuid, uuidFromId } from '@workspace-wallet/contract'
import { type CoreClient, createCoreClient } from '@workspace-wallet/core-client'
import { execute, query } from '../database.ts'
import type { System } from '../system.ts'
import { until } from '../until.ts'

/** The IDs of what `keepBooks` has written, by the names that tests use. */
export type Books = {
  workspaces: Record<'books' | 'others' | 'deleted' | 'escrow', string>
  wallets: Record<
    'a' | 'b' | 'c' | 'euro' | 'yen' | 'x' | 'y' | 'externalDollar' | 'externalOfOthers' | 'payer' | 'payee',
    string
  >
  transfers: Record<
    'rent' | 'back' | 'big' | 'small' | 'last' | 'deposit' | 'withdrawal' | 'euroDeposit' | keyof Escrow['transfers'],
    string
  >
  holds: Escrow['holds']
}

type Escrow = {
  workspaceId: string
  wallets: Record<'payer' | 'payee', string>
  transfers: Record<
    'draw' | 'capture' | 'order' | 'half' | 'rest' | 'otherOrder' | 'batched' | 'batchedNext' | 'batchedLast',
    string
  >
  holds: Record<'open' | 'drawn' | 'captured' | 'released' | 'expired' | 'later', string>
}

/** Two workspaces with transfers, deposits and a withdrawal, one that was deleted with money in it, and an empty one. */
export async function keepBooks(system: System): Promise<Books> {
  const { admin, coreUrl, serviceToken, database } = system
  const service = createCoreClient({ url: coreUrl, token: serviceToken })
  const caller = { requestId: 'test', address: '203.0.113.9' }
  const newWorkspace = async (name: string) => (await admin.workspaces.create.mutate({ name })).workspaceId
  const newWallet = async (workspaceId: string, currency: string) =>
    (await admin.wallets.create.mutate({ workspaceId, currency, name: 'Wallet' })).walletId
  const fund = async (kind: 'deposit' | 'withdraw', workspaceId: string, walletId: string, amount: string) =>
    (await admin.wallets[kind].mutate({ workspaceId, walletId, amount, caller, bizId: randomUUID() })).transferId
  const pay = async (sourceWalletId: string, targetWalletId: string, amount: string, extra = {}) => {
    const order = { sourceWalletId, targetWalletId, amount, currency: 'USD', ...extra }
    const { transferId, createdAt } = await service.transfers.create.mutate({ workspaceId: ours, caller, order })
    // No two transfers of the same millisecond, so that their times have one order.
    await until('the clock advances', () => Date.now() > createdAt.getTime())
    return transferId
  }

  const ours = await newWorkspace('Books')
  const a = await newWallet(ours, 'USD')
  const b = await newWallet(ours, 'USD')
  const c = await newWallet(ours, 'USD')
  const euro = await newWallet(ours, 'EUR')
  const yen = await newWallet(ours, 'JPY')
  const transfers = {
    deposit: await fund('deposit', ours, a, '1000.00'),
    rent: await pay(a, b, '100.50', { bizId: 'inv-1', remark: 'rent "May" \\ 五月' }),
    back: await pay(b, a, '40'),
    big: await pay(a, c, '310.25', { bizId: 'inv-3' }),
    small: await pay(b, c, '5.00'),
    withdrawal: await fund('withdraw', ours, a, '9.75'),
    last: await pay(a, b, '1'),
    euroDeposit: await fund('deposit', ours, euro, '50.0'),
  }
  await fund('deposit', ours, yen, '5000')

  const others = await newWorkspace('Others')
  const x = await newWallet(others, 'USD')
  const y = await newWallet(others, 'USD')
  await fund('deposit', others, x, '507.00')
  // Only the second withdrawal is after the limit was set.
  await fund('withdraw', others, x, '2.00')
  await admin.limits.set.mutate({ workspaceId: others, subject: { walletId: x }, currency: 'USD', perDay: '100.00' })
  await fund('withdraw', others, x, '5.00')

  const subscription = { workspaceId: others, caller, url: 'https://receiver.example/', bizId: 'hook' }
  const { webhookId } = await service.webhooks.create.mutate(subscription)
  const deletable = await service.webhooks.create.mutate({ ...subscription, bizId: 'deleted' })

  const deleted = await newWorkspace('Deleted')
  await fund('deposit', deleted, await newWallet(deleted, 'BTC'), '0.00000001')
  await newWorkspace('Empty')
  const escrow = await keepEscrow(await newWorkspace('Escrow'), system, service)

  const { workspaceId } = system
  await admin.members.add.mutate({ workspaceId, userId: 'gone' })
  const ofKey = { workspaceId, subject: { apiKey: system.apiKey }, currency: 'USD' }
  await admin.limits.set.mutate({ ...ofKey, perDay: '1000.00' })
  await keepRows(database.ownerUrl)
  await admin.limits.set.mutate({ ...ofKey, perDay: '50.00', perTransfer: '10.00' })
  await admin.members.remove.mutate({ workspaceId, userId: 'gone' })
  await admin.wallets.changeStatus.mutate({ workspaceId: ours, walletId: c, status: 'FROZEN' })
  await admin.workspaces.delete.mutate({ workspaceId: deleted, force: true })
  await admin.apiKeys.rotate.mutate({ apiKey: system.apiKey })
  await service.webhooks.rotate.mutate({ workspaceId: others, caller, webhookId })
  await service.webhooks.delete.mutate({ ...deletable, workspaceId: others, caller })
  await service.close()
  for await (const _ of await admin.ledger.checkpoint.query({}));

  const external = async (workspaceId: string) => {
    const isIt = `kind = 'EXTERNAL' and currency = 'USD' and workspace_id = '${uuidFromId('workspace', workspaceId)}'`
    const [row] = await query(database.ownerUrl, `select id from wallet where ${isIt}`)
    return idFromUuid('wallet', row!.id as Uuid<'wallet'>)
  }
  return {
    workspaces: { books: ours, others, deleted, escrow: escrow.workspaceId },
    wallets: {
      ...escrow.wallets,
      a,
      b,
      c,
      euro,
      yen,
      x,
      y,
      externalDollar: await external(ours),
      externalOfOthers: await external(others),
    },
    transfers: { ...transfers, ...escrow.transfers },
    holds: escrow.holds,
  }
}

/** Holds in every status, draws, two reversals of one transfer, and a batch. */
async function keepEscrow(workspaceId: string, { admin }: System, service: CoreClient): Promise<Escrow> {
  const caller = { requestId: 'test', address: '203.0.113.9' }
  const newWallet = async () =>
    (await admin.wallets.create.mutate({ workspaceId, currency: 'USD', name: 'Wallet' })).walletId
  const [payer, payee] = [await newWallet(), await newWallet()]
  await admin.wallets.deposit.mutate({ workspaceId, walletId: payer, amount: '1000.00', caller, bizId: randomUUID() })
  const reserve = async (bizId: string, amount: string, expiresInSeconds = 3600) => {
    const body = { walletId: payer, amount, currency: 'USD', expiresInSeconds, bizId }
    const created = await service.holds.create.mutate({ workspaceId, caller, hold: body })
    await until('the clock advances', () => Date.now() > created.createdAt.getTime())
    return created
  }
  const order = { sourceWalletId: payer, targetWalletId: payee, currency: 'USD' }
  const pay = async (amount: string, extra = {}) => {
    const input = { workspaceId, caller, order: { ...order, amount, ...extra } }
    const { transferId, createdAt } = await service.transfers.create.mutate(input)
    await until('the clock advances', () => Date.now() > createdAt.getTime())
    return transferId
  }
  const reverse = async (reversesTransferId: string, amount: string, bizId: string) => {
    const reversal = { reversesTransferId, amount, currency: 'USD', bizId }
    return (await service.transfers.reverse.mutate({ workspaceId, caller, reversal })).transferId
  }

  const open = await reserve('open', '10.00')
  const drawn = await reserve('drawn', '20.00')
  const captured = await reserve('captured', '8.00')
  const released = await reserve('released', '3.00')
  const draw = await pay('5.00', { holdId: drawn.holdId, holdRemainder: 'KEEP' })
  const capture = await pay('6.00', { holdId: captured.holdId })
  await service.holds.release.mutate({ workspaceId, caller, holdId: released.holdId })
  const paid = await pay('30.00')
  const half = await reverse(paid, '15.00', 'half')
  const rest = await reverse(paid, '15.00', 'rest')
  const otherOrder = await pay('40.00')
  const items = ['1.00', '2.00', '3.00'].map((amount, at) => ({ ...order, amount, bizId: `item-${at}` }))
  const { transfers } = await service.transfers.batch.mutate({ workspaceId, caller, batch: { transfers: items } })
  const [batched, batchedNext, batchedLast] = transfers.map(({ transferId }) => transferId) as [string, string, string]
  // Last, so that nothing else is written between its creation and its expiry, which a sweep may write.
  const expired = await reserve('expired', '4.00', 1)
  await until('the hold expires', () => Date.now() > expired.expiresAt.getTime())
  // Writes that the other one has expired, unless a sweep has.
  const later = await reserve('later', '1.00')
  return {
    workspaceId,
    wallets: { payer, payee },
    transfers: { draw, capture, order: paid, half, rest, otherOrder, batched, batchedNext, batchedLast },
    holds: {
      open: open.holdId,
      drawn: drawn.holdId,
      captured: captured.holdId,
      released: released.holdId,
      expired: expired.holdId,
      later: later.holdId,
    },
  }
}

/** Copies the rows that later actions change, so that a test can put genuine earlier rows back. */
async function keepRows(ownerUrl: string): Promise<void> {
  await execute(ownerUrl, 'create schema kept')
  for (const table of ['api_key', 'hold', 'ledger', 'member', 'spending_limit', 'wallet', 'webhook', 'workspace'])
    await execute(ownerUrl, `create table kept.${table} as table ${table}`)
}
