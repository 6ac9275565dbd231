import { type KeyObject, randomBytes, randomUUID } from 'node:crypto'
import { Decimal, idFromUuid, mintId, type Uuid, uuidFromId } from '@workspace-wallet/contract'
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { chooseSeed, Random } from '../../../../../cli/processes/random.ts'
import { openTestCore, type TestCore } from '../../../../../test/setup/core.ts'
import { connect } from '../../../../../test/setup/database.ts'
import { ledgerStateOf } from '../../../../../test/setup/ledger-states.ts'
import { type ChainedHolds, chainDecisions } from '../decide/chain-decisions.ts'
import { decide } from '../decide/decide.ts'
import type { Command, LedgerRequest } from '../decide/requests.ts'
import { changeHolds } from './change-holds.ts'
import { findHolds, loadWallets, lockLedgers } from './queries.ts'

/**
 * Calls the database function `change_holds` with the service role. A change that does not continue from the stored rows
 * is refused and writes nothing.
 */
const seed = chooseSeed()
console.log(`change_holds: SEED=${seed}`)
const random = new Random(seed)

let testCore: TestCore
let chainKey: KeyObject
let service: pg.Client
let owner: pg.Client
let workspaceId: Uuid<'workspace'>
let wallets: Uuid<'wallet'>[]

beforeAll(async () => {
  testCore = await openTestCore()
  chainKey = testCore.chainKey
  service = await connect(testCore.database.serviceUrl)
  owner = await connect(testCore.database.ownerUrl)
  const admin = testCore.as('admin')
  const workspace = await admin.workspaces.create({ name: 'Test' })
  workspaceId = uuidFromId('workspace', workspace.workspaceId)!
  wallets = []
  for (const currency of ['USD', 'USD', 'EUR']) {
    const { walletId } = await admin.wallets.create({ workspaceId: workspace.workspaceId, currency, name: 'Wallet' })
    await admin.wallets.deposit({
      workspaceId: workspace.workspaceId,
      walletId,
      amount: '1000.00',
      bizId: randomUUID(),
    })
    wallets.push(uuidFromId('wallet', walletId)!)
  }
})
afterAll(async () => {
  await Promise.all([service.end(), owner.end()])
  await testCore.close()
})

const caller = { actor: 'test', requestId: 'test', clientAddress: null }
const pick = <Item>(items: readonly Item[]): Item => random.pick(items)

function creation(): Command {
  const at = random.int(3)
  return {
    kind: 'hold creation',
    holdId: uuidFromId('hold', mintId('hold')),
    bizId: randomUUID(),
    walletId: wallets[at]!,
    amount: pick(['0.01', '1.00', '2.50']),
    currency: at === 2 ? 'EUR' : 'USD',
    // None expires during the test: core would write that.
    expiresInSeconds: 3600 + random.int(100_000),
    remark: null,
    reference: null,
    ...caller,
  }
}

/** The rows that core would write for some creations and releases of holds. */
async function chained(): Promise<ChainedHolds> {
  const { rows } = await owner.query(
    `select id from hold where workspace_id = $1 and status = 'OPEN' order by id limit 2`,
    [workspaceId],
  )
  const commands = [
    ...Array.from({ length: 1 + random.int(3) }, creation),
    ...rows.map(({ id }): Command => ({ kind: 'hold release', hold: { id }, ...caller })),
  ]
  const [ledger] = await lockLedgers(service, [workspaceId])
  const loaded = await loadWallets(
    service,
    wallets.map(id => ({ workspaceId, id })),
  )
  const holds = await findHolds(
    service,
    rows.map(({ id }) => ({ workspaceId, name: { id } })),
  )
  const state = ledgerStateOf(
    loaded.map(({ wallet }) => wallet),
    {
      ...ledger!,
      holds: new Map(holds.map(hold => [hold.id, hold])),
    },
  )
  const requests = commands.map(
    (command): LedgerRequest => ({ workspaceId, commands: [command], mayBePosted: false, deadlineMs: Infinity }),
  )
  const decision = decide(state, requests, loaded[0]!.now, 0)
  expect(decision.results.map(({ kind }) => kind)).toEqual(requests.map(() => 'posted'))
  return chainDecisions(chainKey, [decision]).holds
}

const offByOneOrTwo = (value: number) => value + pick([-2, -1, 1, 2])
const anotherWallet = (id: string) => pick(wallets.filter(each => each !== id))
const another = (amount: Decimal) => pick([amount.plus('0.01'), amount.plus('1000'), new Decimal('-0.01')])

/** Changes that make a call invalid. */
const damages: Record<string, (batch: ChainedHolds) => void> = {
  'a position of a ledger': ({ ledgers: [ledger] }) => {
    ledger!.position = offByOneOrTwo(ledger!.position)
  },
  'a hold count of a ledger': ({ ledgers: [ledger] }) => {
    ledger!.holdCount = offByOneOrTwo(ledger!.holdCount)
  },
  'a time': ({ ledgers: [ledger] }) => {
    ledger!.lastPostedAt = new Date(Date.now() + pick([-3_600_000, 60_000]))
  },
  'a ledger with another MAC': ({ ledgers: [ledger] }) => {
    ledger!.previousMac = randomBytes(32)
  },
  'a missing ledger': ({ ledgers }) => {
    ledgers.pop()
  },
  'no ledger, and no events': ({ ledgers, events }) => {
    ledgers.splice(0)
    events.splice(0)
  },
  'a sum that is held': ({ wallets }) => {
    const wallet = pick(wallets)
    wallet.held = another(wallet.held)
  },
  'a hold count of a wallet': ({ wallets }) => {
    const wallet = pick(wallets)
    wallet.holdCount = offByOneOrTwo(wallet.holdCount)
  },
  'a time until which a wallet holds that is after the first expiry': ({ wallets }) => {
    pick(wallets.filter(({ held }) => !held.isZero())).heldUntil = new Date(Date.now() + 1e9)
  },
  'no time until which a wallet holds': ({ wallets }) => {
    pick(wallets.filter(({ held }) => !held.isZero())).heldUntil = null
  },
  'a wallet with another MAC': ({ wallets }) => {
    pick(wallets).previousMac = randomBytes(32)
  },
  'a missing wallet': ({ wallets }) => {
    wallets.splice(random.int(wallets.length), 1)
  },
  'an extra wallet': ({ wallets: rows }) => {
    const other = wallets.find(id => rows.every(row => row.id !== id))
    rows.push({ ...pick(rows), id: other ?? (randomUUID() as string as Uuid<'wallet'>) })
  },
  'a duplicate wallet': ({ wallets }) => {
    wallets.push(pick(wallets))
  },
  'what remains of a hold': ({ holds }) => {
    const hold = pick(holds)
    hold.remaining = another(hold.remaining)
  },
  'what is captured of a hold': ({ holds }) => {
    const hold = pick(holds.filter(({ status }) => status === 'OPEN'))
    hold.captured = another(hold.captured)
  },
  'an amount of a hold': ({ holds }) => {
    const hold = pick(holds.filter(({ status }) => status === 'OPEN'))
    hold.amount = pick(['0', '-1', '99.99', 'NaN', '1e38'])
  },
  'a status of a hold': ({ holds }) => {
    const hold = pick(holds)
    hold.status = hold.status === 'OPEN' ? pick(['CAPTURED', 'RELEASED', 'EXPIRED', 'NONE' as 'EXPIRED']) : 'OPEN'
  },
  'a wallet of a hold': ({ holds }) => {
    const hold = pick(holds.filter(({ previousMac }) => previousMac === null))
    hold.walletId = anotherWallet(hold.walletId)
  },
  'a currency of a hold': ({ holds }) => {
    const hold = pick(holds.filter(({ previousMac }) => previousMac === null))
    hold.currency = hold.currency === 'USD' ? 'EUR' : 'USD'
  },
  'a number of a hold that is taken': ({ holds }) => {
    pick(holds.filter(({ previousMac }) => previousMac === null)).number = 1
  },
  'a hold number that is too high': ({ holds }) => {
    pick(holds.filter(({ previousMac }) => previousMac === null)).number += pick([100, 4e15])
  },
  'a wallet hold number that is too high': ({ holds }) => {
    pick(holds.filter(({ previousMac }) => previousMac === null)).walletNumber += pick([100, 4e15])
  },
  'the creation time of a new hold': ({ holds }) => {
    const hold = pick(holds.filter(({ previousMac }) => previousMac === null))
    hold.createdAt = new Date(hold.createdAt.getTime() + pick([-1, 1, -3_600_000]))
  },
  'a hold with another MAC': ({ holds }) => {
    pick(holds).previousMac = randomBytes(32)
  },
  'a missing hold': ({ holds }) => {
    holds.splice(random.int(holds.length), 1)
  },
  'a position of an event': ({ events }) => {
    const event = pick(events)
    event.position = offByOneOrTwo(event.position)
  },
  'a type of an event': ({ events }) => {
    pick(events).type = pick(['wallet.created', 'hold.gone' as never])
  },
  'a hold of an event': ({ events }) => {
    pick(events).holdId = pick([randomUUID() as string as Uuid<'hold'>, null])
  },
  'a missing event': ({ events }) => {
    events.splice(random.int(events.length), 1)
  },
  'a duplicate event': ({ events }) => {
    events.push(pick(events))
  },
}

function copyOf({ ledgers, wallets, holds, events }: ChainedHolds): ChainedHolds {
  return {
    ledgers: ledgers.map(row => ({ ...row })),
    wallets: wallets.map(row => ({ ...row })),
    holds: holds.map(row => ({ ...row })),
    events: events.map(row => ({ ...row })),
  }
}

/** A hash of all rows of the ledger's tables. */
async function storedHash(): Promise<string> {
  const tables = ['ledger', 'wallet', 'transfer', 'hold', 'journal'].map(
    table => `(select string_agg(md5(t::text), '' order by md5(t::text)) from ${table} t)`,
  )
  return (await owner.query(`select md5(concat(${tables.join(', ')})) as all`)).rows[0].all
}

test('changes of holds are written', async () => {
  for (let count = 0; count < 5; count++) await changeHolds(service, await chained())
  const { rows } = await owner.query(
    `select (select sum(held) from wallet) = (select sum(remaining) from hold) as "isHeld",
       (select count(*) from hold where status = 'OPEN') > 0 as "areOpen",
       (select count(*) from hold where status = 'RELEASED') > 0 as "areReleased"`,
  )
  expect(rows).toEqual([{ isHeld: true, areOpen: true, areReleased: true }])
})

test.each(Object.keys(damages))(
  '%s that does not continue from the stored rows is refused and writes nothing',
  async name => {
    const before = await storedHash()
    for (let count = 0; count < 8; count++) {
      const batch = copyOf(await chained())
      try {
        damages[name]!(batch)
      } catch {
        // This batch has no row of the kind that is damaged.
        continue
      }
      const changing = changeHolds(service, batch)
      await expect(changing).rejects.toMatchObject({ code: expect.stringMatching(/^(23001|23502|23503|23505|23514)$/) })
    }
    expect(await storedHash()).toBe(before)
  },
)

test('null for all rows of a kind is refused and writes nothing, also for an event at the position of a transfer', async () => {
  const admin = testCore.as('admin')
  const ids = { workspaceId: idFromUuid('workspace', workspaceId), walletId: idFromUuid('wallet', wallets[0]!) }
  await admin.wallets.deposit({ ...ids, amount: '1.00', bizId: randomUUID() })
  await changeHolds(service, await chained())
  const { events, ...rest } = await chained()
  const [transfer] = (await owner.query('select max(position)::integer as position from transfer')).rows
  const [hold] = (await owner.query('select id from hold where number = 1')).rows
  const forged = { ...events[0]!, position: transfer!.position, holdId: hold!.id }
  const none = { ledgers: [], wallets: [], holds: [], events: [] }
  const before = await storedHash()
  for (const given of [{ ...rest, events }, none, { ...none, events: [forged] }]) {
    const values = await argumentsOf(given)
    for (const at of values.keys())
      await expect(
        service.query('select change_holds($1, $2, $3, $4)', values.with(at, null)),
        `${at} of ${JSON.stringify(values)}`,
      ).rejects.toMatchObject({ code: '23001' })
  }
  expect(await storedHash()).toBe(before)
})

/** What `changeHolds` sends. */
async function argumentsOf(batch: ChainedHolds): Promise<unknown[]> {
  let sent: unknown[] = []
  const query = async ({ values }: { values: unknown[] }) => {
    sent = values
    return { rows: [{}] }
  }
  await changeHolds({ query } as unknown as pg.ClientBase, batch)
  return sent
}

test('an event cannot be added at the position of a transfer, without a change of its ledger', async () => {
  const { events } = await chained()
  await changeHolds(service, await chained())
  const [last] = (await owner.query('select l.position, h.id from ledger l, hold h where h.number = 1')).rows
  const admin = testCore.as('admin')
  const ids = { workspaceId: idFromUuid('workspace', workspaceId), walletId: idFromUuid('wallet', wallets[0]!) }
  await admin.wallets.deposit({ ...ids, amount: '1.00', bizId: randomUUID() })
  const before = await storedHash()
  const forged = { ...events[0]!, position: Number(last!.position) + 1, holdId: last!.id }
  const adding = changeHolds(service, { ledgers: [], wallets: [], holds: [], events: [forged] })
  await expect(adding).rejects.toMatchObject({ code: '23001' })
  expect(await storedHash()).toBe(before)
})

test('a change that was decided from outdated rows is refused', async () => {
  const batch = await chained()
  await changeHolds(service, batch)
  await expect(changeHolds(service, batch)).rejects.toMatchObject({ code: '23001' })
})
