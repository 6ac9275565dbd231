import {
  createCoreClient,
  Decimal,
  domainErrorOf,
  type InputFault,
  inputFaultsOf,
  noAnswerErrorOf,
} from '@workspace-wallet/core-client'
import { payOut } from '@workspace-wallet/example-payouts'
import { afterAll, beforeAll, describe, expect, expectTypeOf, test } from 'vitest'
import { type System, startSystem } from './setup/system.ts'
import { createWallet } from './setup/workspaces.ts'

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
    expect(domainErrorOf(refused)).toMatchObject({
      code: 'T003',
      details: { currency: 'USD', field: 'targetWalletId', held: 'EUR' },
    })
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
    const targetWalletId = system.wallets[0]!.walletId
    for (const amount of ['12.34', '5.6']) {
      const walletId = await createWallet(system, { deposits: [amount] })
      const payout = { workspaceId, walletId, targetWalletId, day }
      const paid = await payOut(core, { ...payout, keep: '0' })
      expect(paid.paid?.toFixed()).toBe(amount)
      const { balance } = await core.wallets.balance.query({ ...payout, caller: { requestId: 'test' } })
      expect(balance.toFixed()).toBe('0')
    }
    await core.close()
  })
})

describe('a call whose input the schema of core refuses', () => {
  /** As a JavaScript program could call it. */
  type Untyped = { mutate(input: unknown): Promise<unknown>; query(input: unknown): Promise<unknown> }
  const order = { sourceWalletId: 'wal_a', targetWalletId: 'wal_b', amount: '1.00', currency: 'USD' }
  const caller = { requestId: 'test' }
  const invalid: [what: string, order: object, faults: InputFault[]][] = [
    ['a number as an amount', { ...order, amount: 1 }, [{ path: 'order.amount', message: 'must be a string' }]],
    [
      'two faults',
      { ...order, amount: '-1', currency: 'usd' },
      [
        {
          path: 'order.amount',
          message: 'must be a decimal string such as "100.50", without sign, exponent or leading zero',
        },
        {
          path: 'order.currency',
          message: 'must be the upper-case code of a supported currency, such as USD',
        },
      ],
    ],
    [
      'too many decimals',
      { ...order, amount: '1.005' },
      [{ path: 'order.amount', message: 'must have at most 2 decimals, like its currency' }],
    ],
    [
      'a long remark',
      { ...order, remark: 'x'.repeat(257) },
      [{ path: 'order.remark', message: 'must have at most 256 characters' }],
    ],
    ['an unknown field', { ...order, memo: 'x' }, [{ path: 'order', message: 'Unrecognized key: "memo"' }]],
  ]

  test.each(invalid)('%s', async (_, order, faults) => {
    const core = createCoreClient({ url: system.coreUrl, token: system.serviceToken })
    const create = core.transfers.create as unknown as Untyped
    const error: unknown = await create.mutate({ workspaceId: system.workspaceId, caller, order }).catch(error => error)
    expect(inputFaultsOf(error)).toEqual(faults)
    const sentence = faults.map(({ path, message }) => `${path}: ${message}`).join('; ')
    expect((error as Error).message).toBe(`the input of transfers.create is invalid: ${sentence}`)
    expect([domainErrorOf(error), noAnswerErrorOf(error)]).toEqual([null, null])
    await core.close()
  })

  test('no input at all, also of a procedure that streams its answer', async () => {
    const core = createCoreClient({ url: system.coreUrl, token: system.adminToken })
    for (const [name, procedure] of Object.entries({
      'wallets.get': core.wallets.get,
      'ledger.verify': core.ledger.verify,
    })) {
      const error = await (procedure as unknown as Untyped).query(undefined).catch((error: unknown) => error)
      expect(inputFaultsOf(error)).toEqual([{ path: '', message: 'expected object, received undefined' }])
      expect((error as Error).message).toBe(`the input of ${name} is invalid: expected object, received undefined`)
    }
    await core.close()
  })

  test('at most 20 faults are returned', async () => {
    const core = createCoreClient({ url: system.coreUrl, token: system.gatewayToken })
    const lookup = core.access.lookup as unknown as Untyped
    const error = await lookup.query({ apiKeys: Array(400).fill(1) }).catch((error: unknown) => error)
    expect(inputFaultsOf(error)).toHaveLength(20)
    expect(inputFaultsOf(error)![19]).toEqual({ path: 'apiKeys[19]', message: 'expected string, received number' })
    await core.close()
  })
})

test('a token of another role is refused with the roles that may call the procedure', async () => {
  const core = createCoreClient({ url: system.coreUrl, token: system.serviceToken })
  await expect(core.workspaces.create.mutate({ name: 'Test' })).rejects.toMatchObject({
    message: 'a token of the role service may not call workspaces.create: use a token of the role admin',
    data: { code: 'FORBIDDEN', httpStatus: 403 },
  })
  await core.close()
})

test('the public URL of a gateway is named as such', async () => {
  const core = createCoreClient({ url: system.baseUrl, token: system.serviceToken })
  const error: unknown = await core.audit.list.query({}).catch((error: unknown) => error)
  expect(noAnswerErrorOf(error)?.message).toBe(
    `${system.baseUrl} returned HTTP 404: this is the public API of a gateway; use the URL of core, or of a gateway's internal listener`,
  )
  await core.close()
})
