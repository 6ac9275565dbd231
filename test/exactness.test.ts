/** Exact amounts: none passes through a float or is rounded, and each is returned as it was sent. */
import { randomUUID } from 'node:crypto'
import { Decimal, type Uuid } from '@workspace-wallet/contract'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chooseSeed, Random } from '../cli/processes/random.ts'
import { decide } from '../services/core/src/ledger/decide/decide.ts'
import type { Posting } from '../services/core/src/ledger/decide/requests.ts'
import { textOf, unitsOf } from './model/books.ts'
import { call, createPath } from './setup/client.ts'
import { query } from './setup/database.ts'
import { asUuid, ledgerStateOf, postingOf, requestOf, walletStateOf } from './setup/ledger-states.ts'
import { type System, startSystem } from './setup/system.ts'
import { verifyLedger } from './setup/verify.ts'
import { createWallet } from './setup/workspaces.ts'

let system: System
beforeAll(async () => {
  system = await startSystem()
})
afterAll(() => system.stop())

/** 38 digits, the most that an amount may have: with the 18 decimals of ether, and without decimals in yen. */
const mostEther = `${'9'.repeat(20)}.${'9'.repeat(18)}`
const mostYen = '9'.repeat(38)
const wei = `0.${'0'.repeat(17)}1`

async function newWallet(currency: string, ...deposits: string[]): Promise<string> {
  const walletId = await createWallet(system, { currency })
  for (const amount of deposits) {
    const receipt = await system.admin.wallets.deposit.mutate({
      workspaceId: system.workspaceId,
      walletId,
      amount,
      bizId: randomUUID(),
    })
    expect(receipt.amount).toBe(amount)
  }
  return walletId
}

async function get(path: string) {
  const { body } = await call(system, 'GET', path)
  expect(body.code, path).toBe('2000')
  return body.data
}

const pay = (sourceWalletId: string, targetWalletId: string, amount: string, currency: string) =>
  call(system, 'POST', createPath, { sourceWalletId, targetWalletId, amount, currency })

const balanceOf = async (walletId: string): Promise<string> =>
  (await get(`/api/v1/wallets/${walletId}/balance`)).balance

describe('at the last digit', () => {
  test('one wei can be transferred next to the greatest amounts, and one wei too much is rejected', async () => {
    const rich = await newWallet('ETH', mostEther, mostEther)
    const poor = await newWallet('ETH')
    const twice = textOf(2n * unitsOf(mostEther), 'ETH')
    expect(await balanceOf(rich)).toBe(twice)
    expect((await pay(rich, poor, wei, 'ETH')).body.code).toBe('2000')
    expect([await balanceOf(rich), await balanceOf(poor)]).toEqual([textOf(unitsOf(twice) - 1n, 'ETH'), wei])
    expect((await pay(poor, rich, `0.${'0'.repeat(17)}2`, 'ETH')).body.code).toBe('T002')

    expect((await pay(rich, poor, mostEther, 'ETH')).body.code).toBe('2000')
    expect(await balanceOf(rich)).toBe(textOf(unitsOf(mostEther) - 1n, 'ETH'))
    expect((await pay(rich, poor, mostEther, 'ETH')).body.code).toBe('T002')
    expect((await pay(poor, rich, wei, 'ETH')).body.code).toBe('2000')
    expect((await pay(rich, poor, mostEther, 'ETH')).body.code).toBe('2000')
    expect([await balanceOf(rich), await balanceOf(poor)]).toEqual([`0.${'0'.repeat(18)}`, twice])
  })

  test('balances may have more digits than amounts', async () => {
    const walletId = await newWallet('JPY', mostYen, mostYen, mostYen)
    expect(await balanceOf(walletId)).toBe((3n * BigInt(mostYen)).toString())
    const { content } = await get(`/api/v1/wallets/${walletId}/flows`)
    const held = [3n, 2n, 1n].map(times => (times * BigInt(mostYen)).toString())
    expect(content.map(({ balanceAfter }: { balanceAfter: string }) => balanceAfter)).toEqual(held)
  })

  test('39 digits, or one decimal more than the currency has, are rejected', async () => {
    const [source, target] = [await newWallet('ETH', '1'), await newWallet('ETH')]
    for (const amount of [`1${'0'.repeat(20)}.${'0'.repeat(18)}`, `0.${'0'.repeat(18)}1`])
      expect((await pay(source, target, amount, 'ETH')).body.code, amount).toBe('S012')
  })

  test('lists sort amounts that are equal as floats', async () => {
    const nines = '12345678901234567890'
    const amounts = ['4', '1', '3', '2'].map(last => `${nines}.${'0'.repeat(17)}${last}`)
    const wallets: string[] = []
    for (const amount of amounts) wallets.push(await newWallet('ETH', amount))
    const sorted = amounts.toSorted()

    const shownWallets = await get('/api/v1/wallets?currency=ETH&sort=amount,asc&size=100')
    const balances = shownWallets.content.map(({ balance }: { balance: string }) => balance)
    expect(balances.filter((balance: string) => amounts.includes(balance))).toEqual(sorted)

    const target = await newWallet('ETH')
    for (const [at, amount] of amounts.entries()) await pay(wallets[at]!, target, amount, 'ETH')
    const amountsOf = async (path: string) => (await get(path)).content.map(({ amount }: { amount: string }) => amount)
    for (const path of [`/api/v1/wallets/${target}/flows`, `/api/v1/transfer/query/orders/wallet/${target}`])
      expect(await amountsOf(`${path}?sort=amount,asc`)).toEqual(sorted)
    expect(await amountsOf('/api/v1/transfer/query/orders?currency=ETH&sort=amount,desc&size=6')).toEqual(
      expect.arrayContaining(sorted),
    )
  })
})

test('every endpoint returns an amount as it was sent', async () => {
  const cases: [string, string[]][] = [
    ['USD', ['100', '100.5', '100.50', '0.1', '0.10', '0.01', '9007199254740993.01']],
    ['ETH', ['1', '1.0', '1.10', wei, '0.100000000000000000', '12345678901234567890.000000000000000000']],
    ['JPY', ['1', '100', '9007199254740993']],
  ]
  for (const [currency, amounts] of cases) {
    const funds = currency === 'USD' ? '99999999999999999.99' : '99999999999999999999'
    const [source, target] = [await newWallet(currency, funds), await newWallet(currency)]
    for (const amount of amounts) {
      const created = (await pay(source, target, amount, currency)).body.data
      expect(created.amount).toBe(amount)
      const { transferId } = created
      expect((await get(`/api/v1/transfer/query/orders/${transferId}`)).amount).toBe(amount)
      for (const list of [
        `/api/v1/transfer/query/orders?transferIdPrefix=${transferId}`,
        `/api/v1/transfer/query/orders/wallet/${source}?transferIdPrefix=${transferId}`,
        `/api/v1/wallets/${source}/flows?transferIdPrefix=${transferId}`,
        `/api/v1/wallets/${target}/flows?transferIdPrefix=${transferId}`,
      ])
        expect((await get(list)).content, list).toMatchObject([{ transferId, amount }])
    }
    // The default order reads ranges of sequence numbers, with other statements.
    for (const list of [`/api/v1/wallets/${target}/flows`, `/api/v1/transfer/query/orders/wallet/${target}`])
      expect((await get(list)).content.map(({ amount }: { amount: string }) => amount)).toEqual(amounts.toReversed())
    const sum = amounts.reduce((units, amount) => units + unitsOf(amount), 0n)
    expect(unitsOf(await balanceOf(target))).toBe(sum)
    expect(unitsOf(await balanceOf(source))).toBe(unitsOf(funds) - sum)
  }
})

describe('sums of a hundred thousand amounts are exact', () => {
  const many = 100_000

  test('in code: Decimal adds like whole numbers', () => {
    const random = new Random(1)
    let [sum, units] = [new Decimal(0), 0n]
    for (let count = 0; count < many; count++) {
      const whole = String(random.int(2 ** 31)).repeat(1 + random.int(2))
      const amount = `${BigInt(whole)}.${String(random.int(1_000_000_000)).padStart(9, '0')}${String(count).padStart(9, '0')}`
      // In and out, like the flows of a wallet.
      if (count % 3 === 2) {
        sum = sum.minus(amount)
        units -= unitsOf(amount)
      } else {
        sum = sum.plus(amount)
        units += unitsOf(amount)
      }
    }
    expect(sum.toFixed(18)).toBe(textOf(units, 'ETH'))
  })

  test('in the database: the sums of the verifier and of the lists', async () => {
    // The n-th amount is n times this one, so the sum has a formula.
    const amount = '12345678901234567.890123456789012345'
    const [row] = await query(
      system.database.serviceUrl,
      `select sum(n * ${amount}::numeric)::text as sum, sum(case n % 2 when 0 then n * ${amount}::numeric
         else - (n - 1) * ${amount}::numeric end)::text as difference
       from generate_series(1::bigint, ${many}) n`,
    )
    const units = unitsOf(amount)
    expect(unitsOf(String(row!.sum))).toBe((units * BigInt(many) * BigInt(many + 1)) / 2n)
    // 2 − 0 + 4 − 2 + …: each pair leaves twice the amount.
    expect(unitsOf(String(row!.difference))).toBe(units * BigInt(many))
  })

  test('in the posting rules: two wallets after ten thousand transfers of random size', () => {
    const seed = chooseSeed()
    const random = new Random(seed)
    const wallets = new Map([
      ['a', walletStateOf('a', { currency: 'ETH', balance: new Decimal(mostEther) })],
      ['b', walletStateOf('b', { currency: 'ETH' })],
    ])
    const held = { a: unitsOf(mostEther), b: 0n }
    let orderCount = 0
    for (let batch = 0; batch < 40; batch++) {
      const postings = Array.from({ length: 250 }, (_, at): Posting => {
        const [sourceWalletId, targetWalletId] = (random.chance(0.5) ? ['a', 'b'] : ['b', 'a']) as [
          Uuid<'wallet'>,
          Uuid<'wallet'>,
        ]
        const digits = 1 + random.int(38)
        const units = BigInt(1 + random.int(9)) * 10n ** BigInt(digits - 1) + BigInt(random.int(2 ** 31))
        const amount = textOf(units, 'ETH')
        return postingOf({
          transferId: asUuid(`${batch}/${at}`),
          sourceWalletId,
          targetWalletId,
          amount,
          currency: 'ETH',
        })
      })
      const ledger = ledgerStateOf(wallets.values(), { orderCount })
      const decision = decide(
        ledger,
        postings.map(posting => requestOf('w', posting)),
        new Date(batch),
        0,
      )
      for (const [at, result] of decision.results.entries()) {
        const { sourceWalletId, targetWalletId, amount } = postings[at]!
        const isPaid = held[sourceWalletId as 'a' | 'b'] >= unitsOf(amount)
        if ((result.kind === 'posted') !== isPaid) throw new Error(`seed ${seed}, ${batch}/${at}: ${result.kind}`)
        if (!isPaid) continue
        held[sourceWalletId as 'a' | 'b'] -= unitsOf(amount)
        held[targetWalletId as 'a' | 'b'] += unitsOf(amount)
      }
      for (const each of decision.wallets) wallets.set(each.id, each)
      orderCount = decision.after.orderCount
    }
    expect(orderCount, `seed ${seed}`).toBeGreaterThan(1_000)
    for (const id of ['a', 'b'] as const) expect(wallets.get(id)!.balance.toFixed(18)).toBe(textOf(held[id], 'ETH'))
  })
})

test('the ledger is sound after these tests', async () => {
  expect(await verifyLedger(system)).toMatchObject({ ok: true, violations: [] })
})
