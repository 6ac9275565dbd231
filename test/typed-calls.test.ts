import { Decimal } from '@workspace-wallet/contract'
import { createCoreClient, domainErrorOf } from '@workspace-wallet/core-client'
import { payOut } from '@workspace-wallet/example-payouts'
import { afterAll, beforeAll, describe, expect, expectTypeOf, test } from 'vitest'
import { type System, startSystem } from './setup/system.ts'

/** Typed calls of another package, to core itself and through the internal listener of a gateway. */

let system: System
beforeAll(async () => {
  system = await startSystem({ cores: 2 })
})
afterAll(() => system?.stop())

describe.each([
  ['directly', '2026-11-20', () => system.cores.map(({ url }) => url)],
  ['through the internal listener', '2026-11-21', () => [system.gateways[0]!.internalUrl]],
])('%s', (way, day, urls) => {
  test('amounts arrive as Decimal, and times as Date', async () => {
    const core = createCoreClient({ url: urls(), token: system.serviceToken })
    const { workspaceId } = system
    const [, savings, euro] = system.wallets
    const caller = { requestId: `test ${way}` }
    const wallet = await core.wallets.get.query({ workspaceId, walletId: savings!.walletId, caller })
    expectTypeOf(wallet.balance).toEqualTypeOf<Decimal>()
    expectTypeOf(wallet.createdAt).toEqualTypeOf<Date>()
    expect(Decimal.isDecimal(wallet.balance)).toBe(true)
    expect(wallet.createdAt).toBeInstanceOf(Date)

    const order = { sourceWalletId: savings!.walletId, targetWalletId: euro!.walletId, amount: '1.00', currency: 'USD' }
    const refused = await core.transfers.create.mutate({ workspaceId, caller, order }).catch((error: unknown) => error)
    expect(domainErrorOf(refused)).toMatchObject({ code: 'T003', details: { currency: 'USD' } })
    await core.close()
  })

  test('a service pays out the exact amount once a day', async () => {
    const core = createCoreClient({ url: urls(), token: system.serviceToken })
    const { workspaceId } = system
    const [main, savings] = system.wallets
    const payout = { workspaceId, walletId: main!.walletId, targetWalletId: savings!.walletId, day }
    const before = await core.wallets.balance.query({ ...payout, caller: { requestId: 'before' } })
    const keep = before.balance.minus('100.10').toFixed()

    const paid = await payOut(core, { ...payout, keep })
    expect(paid).toMatchObject({ transferId: expect.stringMatching(/^trf_/), at: expect.any(Date) })
    expect(paid.paid?.toFixed()).toBe('100.1')
    // A second run finds nothing to pay. With another limit, it finds the payout of the day.
    expect(await payOut(core, { ...payout, keep })).toEqual({ paid: null, because: 'NOTHING_TO_PAY' })
    expect(await payOut(core, { ...payout, keep: '0' })).toEqual(paid)
    const after = await core.wallets.balance.query({ ...payout, caller: { requestId: 'after' } })
    expect(before.balance.minus(after.balance).toFixed()).toBe('100.1')
    await core.close()
  })

  test('two wallets pay out on the same day', async () => {
    const core = createCoreClient({ url: urls(), token: system.serviceToken })
    const { workspaceId } = system
    const [main, savings] = system.wallets
    const payout = { workspaceId, walletId: savings!.walletId, targetWalletId: main!.walletId, day }
    const caller = { requestId: 'test' }
    const { balance } = await core.wallets.balance.query({ ...payout, caller })
    expect(balance.gt(0)).toBe(true)

    const paid = await payOut(core, { ...payout, keep: '0' })
    expect(paid.paid?.toFixed()).toBe(balance.toFixed())
    expect((await core.wallets.balance.query({ ...payout, caller })).balance.toFixed()).toBe('0')
    await core.close()
  })
})
