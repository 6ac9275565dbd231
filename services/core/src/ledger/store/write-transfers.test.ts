import { type KeyObject, randomBytes, randomUUID } from 'node:crypto'
import { Decimal, mintId, type Uuid, uuidFromId } from '@workspace-wallet/contract'
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { chooseSeed, Random } from '../../../../../cli/processes/random.ts'
import { openTestCore, type TestCore, verifyCore } from '../../../../../test/setup/core.ts'
import { connect, type TestDatabase } from '../../../../../test/setup/database.ts'
import { ledgerStateOf, postingOf, requestOf } from '../../../../../test/setup/ledger-states.ts'
import type { Queryable } from '../../database/statement.ts'
import { type ChainedPostings, chainDecisions } from '../decide/chain-decisions.ts'
import { decide } from '../decide/decide.ts'
import { type LedgerRequest, walletsOf, workspacesOf } from '../decide/requests.ts'
import { findTransfers, loadWallets, lockLedgers } from './queries.ts'
import { singleOf, type Written, writeSingle, writeTransfers } from './write-transfers.ts'

/**
 * Calls the database function `post` with the service role. A batch that does not continue from the stored rows is refused
 * and writes nothing.
 */
const seed = chooseSeed()
console.log(`post: SEED=${seed}`)
const random = new Random(seed)

let database: TestDatabase
let chainKey: KeyObject
let testCore: TestCore
let service: pg.Client
let owner: pg.Client
/** Two workspaces, each with two wallets in USD, one in EUR, and the EXTERNAL wallet in USD. IDs are UUIDs. */
let workspaces: { id: Uuid<'workspace'>; own: Uuid<'wallet'>[]; euro: Uuid<'wallet'>; external: Uuid<'wallet'> }[]

beforeAll(async () => {
  testCore = await openTestCore()
  ;({ database, chainKey } = testCore)
  service = await connect(database.serviceUrl)
  owner = await connect(database.ownerUrl)
  workspaces = [await newWorkspace(), await newWorkspace()]
})
afterAll(async () => {
  await Promise.all([service.end(), owner.end()])
  await testCore.close()
})

async function newWorkspace() {
  const admin = testCore.as('admin')
  const { workspaceId } = await admin.workspaces.create({ name: 'Test' })
  const newWallet = async (currency: 'USD' | 'EUR') => {
    const { walletId } = await admin.wallets.create({ workspaceId, currency, name: 'Wallet' })
    await admin.wallets.deposit({ workspaceId, walletId, amount: '100.00', bizId: randomUUID() })
    return uuidFromId('wallet', walletId)!
  }
  const own = [await newWallet('USD'), await newWallet('USD')]
  const euro = await newWallet('EUR')
  const id = uuidFromId('workspace', workspaceId)!
  const { rows } = await owner.query(
    `select id from wallet where workspace_id = $1 and kind = 'EXTERNAL' and currency = 'USD'`,
    [id],
  )
  return { id, own, euro, external: rows[0].id as Uuid<'wallet'> }
}

/** A valid batch for these workspaces. */
function newPostings(among = workspaces): LedgerRequest[] {
  return Array.from({ length: random.int(6) + 1 }, () => {
    const { id, own, external } = random.pick(among)
    const [a, b] = random.chance(0.5) ? own : own.toReversed()
    const type = random.pick(['TRANSFER', 'TRANSFER', 'DEPOSIT', 'WITHDRAWAL'] as const)
    const posting = postingOf({
      type,
      sourceWalletId: type === 'DEPOSIT' ? external : a!,
      targetWalletId: type === 'WITHDRAWAL' ? external : b!,
      amount: random.pick(['0.01', '1.00', '2.50']),
    })
    return requestOf(id, posting)
  })
}

/** The rows that core would write; with `status`, as if the ledgers had that status. */
async function chained(requests: LedgerRequest[], status?: 'OPEN'): Promise<ChainedPostings> {
  const ledgers = await lockLedgers(service, workspacesOf(requests))
  const wallets = await loadWallets(service, walletsOf(requests))
  const decisions = ledgers.map(ledger => {
    const inLedger = ({ workspaceId }: { workspaceId: string }) => workspaceId === ledger.workspaceId
    const own = wallets.map(({ wallet }) => wallet).filter(inLedger)
    const state = ledgerStateOf(own, { ...ledger, ...(status && { status }) })
    return decide(state, requests.filter(inLedger), wallets[0]!.now, 0)
  })
  return chainDecisions(chainKey, decisions).postings
}

const pick = <Item>(items: readonly Item[]): Item => random.pick(items)
const anotherWallet = (id: string) =>
  pick(workspaces.flatMap(({ own, euro, external }) => [...own, euro, external]).filter(each => each !== id))
const offByOneOrTwo = (value: number) => value + pick([-2, -1, 1, 2])

/** Changes that make a batch invalid, each alone and any two together. */
const damages: Record<string, (batch: ChainedPostings) => void> = {
  'an amount': ({ transfers }) => {
    const { transfer } = pick(transfers)
    transfer.amount = pick(['0', '-1.00', 'NaN', 'Infinity', '99.99', '1000000.00', '1e38', '1e-19'])
  },
  'a currency': ({ transfers }) => {
    pick(transfers).transfer.currency = pick(['EUR', 'JPY', 'XXX'])
  },
  'a type': ({ transfers }) => {
    const { transfer } = pick(transfers)
    transfer.type = pick((['TRANSFER', 'DEPOSIT', 'WITHDRAWAL'] as const).filter(type => type !== transfer.type))
  },
  'a source': ({ transfers }) => {
    const { transfer } = pick(transfers)
    transfer.sourceWalletId = anotherWallet(transfer.sourceWalletId)
  },
  'a target': ({ transfers }) => {
    const { transfer } = pick(transfers)
    transfer.targetWalletId = anotherWallet(transfer.targetWalletId)
  },
  'a position': ({ transfers }) => {
    const { transfer } = pick(transfers)
    transfer.position = offByOneOrTwo(transfer.position)
  },
  'an order count': ({ transfers }) => {
    const { transfer } = pick(transfers)
    transfer.orderCount = offByOneOrTwo(transfer.orderCount)
  },
  'a hold that does not exist': ({ transfers }) => {
    const { transfer } = pick(transfers)
    Object.assign(transfer, { holdId: transfer.transferId, holdRemaining: pick(['0', '1.00']) })
  },
  'a reversal of nothing': ({ transfers }) => {
    const { transfer } = pick(transfers)
    Object.assign(transfer, { reversesId: randomUUID(), reversedTotal: transfer.amount })
  },
  'a sequence of a source': ({ transfers }) => {
    const { transfer } = pick(transfers)
    transfer.sourceSequence = offByOneOrTwo(transfer.sourceSequence)
  },
  'a sequence of a target': ({ transfers }) => {
    const { transfer } = pick(transfers)
    transfer.targetSequence = offByOneOrTwo(transfer.targetSequence)
  },
  'a balance of an entry': ({ transfers }) => {
    const entry = pick(pick(transfers.map(({ source, target }) => [source, target])))
    entry.balanceAfter = pick([new Decimal(entry.balanceAfter).plus('0.01').toFixed(2), '-0.01', 'NaN', 'Infinity'])
  },
  'an order count of an entry': ({ transfers }) => {
    const entry = pick(pick(transfers.map(({ source, target }) => [source, target])))
    entry.orderCount = offByOneOrTwo(entry.orderCount)
  },
  'a workspace': ({ transfers }) => {
    const { transfer } = pick(transfers)
    transfer.workspaceId = workspaces.find(({ id }) => id !== transfer.workspaceId)!.id
  },
  'a missing transfer': ({ transfers }) => {
    transfers.splice(random.int(transfers.length), 1)
  },
  'an extra transfer': ({ transfers }) => {
    const { transfer, source, target } = pick(transfers)
    const transferId = uuidFromId('transfer', mintId('transfer'))
    transfers.push({ transfer: { ...transfer, transferId }, source, target })
  },
  'a balance of a wallet': ({ wallets }) => {
    const wallet = pick(wallets)
    wallet.balance = pick([wallet.balance.plus('1000'), wallet.balance.minus('0.01')])
  },
  'a sequence of a wallet': ({ wallets }) => {
    const wallet = pick(wallets)
    wallet.sequence = offByOneOrTwo(wallet.sequence)
  },
  'a count of a wallet': ({ wallets }) => {
    const wallet = pick(wallets)
    wallet.orderCount = offByOneOrTwo(wallet.orderCount)
  },
  'a head': ({ wallets }) => {
    pick(wallets).head = pick([randomBytes(33), Buffer.alloc(0)])
  },
  'a wallet of another version': ({ wallets }) => {
    const wallet = pick(wallets)
    wallet.version = String(Number(wallet.version) - 1)
  },
  'a missing wallet': ({ wallets }) => {
    wallets.splice(random.int(wallets.length), 1)
  },
  'a duplicate wallet': ({ wallets }) => {
    wallets.push(pick(wallets))
  },
  'a count of a ledger': ({ ledgers }) => {
    const ledger = pick(ledgers)
    ledger.orderCount = offByOneOrTwo(ledger.orderCount)
  },
  'a position of a ledger': ({ ledgers }) => {
    const ledger = pick(ledgers)
    ledger.position = offByOneOrTwo(ledger.position)
  },
  'a ledger of another version': ({ ledgers }) => {
    const ledger = pick(ledgers)
    ledger.version = String(Number(ledger.version) - 1)
  },
  'a duplicate ledger': ({ ledgers }) => {
    ledgers.push(pick(ledgers))
  },
  'a ledger with another MAC': ({ ledgers }) => {
    pick(ledgers).previousMac = randomBytes(32)
  },
  'a wallet with another MAC': ({ wallets }) => {
    pick(wallets).previousMac = randomBytes(32)
  },
  'a time': ({ ledgers }) => {
    pick(ledgers).lastPostedAt = new Date(Date.now() + pick([-3_600_000, -60_000, 60_000, 3_600_000]))
  },
}

/** A deep copy, so that a change affects only one place even where rows are shared. */
function copyOf({ transfers, wallets, ledgers }: ChainedPostings): ChainedPostings {
  return {
    transfers: transfers.map(({ transfer, source, target }) => ({
      transfer: { ...transfer },
      source: { ...source },
      target: { ...target },
    })),
    wallets: wallets.map(wallet => ({ ...wallet })),
    ledgers: ledgers.map(ledger => ({ ...ledger })),
  }
}

/** A `notAfter` that does not pass during the test. */
const soon = () => new Date(Date.now() + 60_000)

/** A hash of all rows of the ledger's tables. */
async function storedHash(): Promise<string> {
  const tables = ['ledger', 'wallet', 'transfer'].map(
    table => `(select string_agg(md5(t::text), '' order by md5(t::text)) from ${table} t)`,
  )
  return (await owner.query(`select md5(concat(${tables.join(', ')})) as all`)).rows[0].all
}

function write(batch: ChainedPostings, notAfter: Date | null, db: Queryable = service): Promise<Written | null> {
  return writeTransfers(db, batch, notAfter && { notAfter, name: 'test' })
}

/** Posts a batch; null when it was refused. */
async function attempt(batch: ChainedPostings, notAfter: Date | null): Promise<Written | null> {
  return nullIfRefused(write(batch, notAfter), /^(23001|40001|23502|23505|23514|22P02)$/)
}

/** @param codes the SQLSTATEs of a refusal */
async function nullIfRefused(posting: Promise<Written | null>, codes: RegExp, what = ''): Promise<Written | null> {
  return posting.catch(error => {
    expect((error as pg.DatabaseError).code, `${what} ${error}`).toMatch(codes)
    return null
  })
}

const names = Object.keys(damages)
const pairs = names.flatMap((first, at) => names.slice(at + 1).map(second => [first, second]))

test('the sequences of wallets are looked up in their own indexes, however few rows the planner expects', async () => {
  // A new session plans its statements while the tables are almost empty. As in those of core, sequential scans are disabled.
  const client = await connect(database.serviceUrl)
  await client.query('set enable_seqscan = off')
  const batch = await chained(newPostings())
  await write(batch, null, client)
  const names = batch.transfers.map(({ transfer }) => ({
    workspaceId: transfer.workspaceId,
    name: { id: transfer.transferId },
  }))
  const found = await findTransfers(client, names)
  expect(found.map(({ source }) => source.mac).toSorted()).toEqual(
    batch.transfers.map(({ source }) => source.mac.toString('hex')).toSorted(),
  )
  await client.query('select pg_stat_force_next_flush()')
  await client.end()
  // In Citus, a table is a shard with a number, which is hidden otherwise.
  await owner.query('set citus.override_table_visibility = off')
  const { rows } = await owner.query(
    `select regexp_replace(indexrelname, '_\\d+$', '') as name, idx_scan > 0 as used
     from pg_stat_user_indexes where relname ~ '^transfer(_\\d+)?$'`,
  )
  const used = rows.filter(row => row.used).map(({ name }) => name)
  expect(used).toEqual(expect.arrayContaining(['transfer_source', 'transfer_target']))
  expect(used.filter(name => /_amount$/.test(name))).toEqual([])
})

test('a batch that is invalid in one place, or in two, is refused and writes nothing', async () => {
  const cases = [...Array.from({ length: 40 }, () => names.map(name => [name])).flat(), ...pairs, ...pairs, ...pairs]
  const before = await storedHash()
  let refused = 0
  for (const chosen of cases) {
    const batch = copyOf(await chained(newPostings()))
    try {
      for (const name of chosen) damages[name]!(batch)
    } catch {
      // The first change removed what the second would change.
      continue
    }
    expect(await attempt(batch, random.chance(0.5) ? soon() : null), chosen.join(' and ')).toBeNull()
    refused++
  }
  expect(refused).toBeGreaterThan(1_000)
  expect(await storedHash()).toBe(before)
})

/** Posts as `commitFromMemory` does: one transfer by its own function. */
async function attemptFromMemory(batch: ChainedPostings): Promise<Written | null> {
  const single = singleOf(batch)
  if (!single) return attempt(batch, soon())
  return nullIfRefused(writeSingle(service, single, soon(), 'test'), /^(23001|23502|23503|23505|23514|22P02)$/)
}

/** A valid transfer between two wallets, which is posted by its own function. */
function newSingle(): Promise<ChainedPostings> {
  const { id, own } = random.pick(workspaces)
  const [a, b] = random.chance(0.5) ? own : own.toReversed()
  const amount = random.pick(['0.01', '1.00', '2.50'])
  return chained([requestOf(id, postingOf({ type: 'TRANSFER', sourceWalletId: a!, targetWalletId: b!, amount }))])
}

test('a single transfer that is invalid in one place, or in two, is refused and writes nothing', async () => {
  const before = await storedHash()
  let refused = 0
  for (const chosen of [...Array.from({ length: 20 }, () => names.map(name => [name])).flat(), ...pairs, ...pairs]) {
    const batch = copyOf(await newSingle())
    for (const name of chosen) if (batch.transfers.length > 0) damages[name]!(batch)
    expect(await attemptFromMemory(batch), chosen.join(' and ')).toBeNull()
    refused++
  }
  expect(refused).toBeGreaterThan(1_000)
  expect(await storedHash()).toBe(before)
})

/** What is not money may be anything that the columns accept: the MACs, which only core can check, cover it. */
const notMoney = new Set([
  ...['ledger_mac', 'source_head', 'source_mac', 'target_head', 'target_mac'],
  ...['id', 'biz_id', 'reference', 'remark', 'actor', 'request_id', 'client_address', 'not_after', 'name'],
])

/** Values of each type that are wrong wherever money is concerned. */
const otherValues = (): Record<string, string[]> => ({
  uuid: [randomUUID(), workspaces[0]!.external, workspaces[0]!.euro, workspaces[1]!.own[0]!],
  xid: ['1'],
  bytea: ['\\x', '\\x00'],
  integer: ['-1', '0', '1', '2', '3', '2147483647'],
  bigint: ['-1', '0', '1', '9223372036854775807'],
  numeric: ['-1', '0', '0.005', '1e30', 'NaN', 'Infinity', '-Infinity'],
  text: ['EUR', 'XXX', ''],
  'timestamp with time zone': ['infinity', '-infinity', '2000-01-01', '2100-01-01'],
})

test('no argument of post_transfer can be null or another one, whatever its caller knows', async () => {
  const { rows: parameters } = await owner.query(
    `select name, type from unnest(
       (select proargnames from pg_proc where proname = 'post_transfer'),
       (select proargtypes::oid[]::regtype[]::text[] from pg_proc where proname = 'post_transfer')) as p (name, type)
     where type is not null`,
  )
  expect(parameters).toHaveLength(34)
  const before = await storedHash()
  for (const [at, { name, type }] of parameters.entries()) {
    if (notMoney.has(name)) continue
    for (const value of [null, ...otherValues()[type]!]) {
      const single = singleOf(await newSingle())!
      const changing = {
        query: ({ values, ...config }: { values: unknown[] }) => {
          // The value may be the right one by chance.
          const other = String(values[at]) === value ? null : value
          return service.query({ ...config, values: values.with(at, other) } as never)
        },
      } as unknown as Queryable
      const posting = writeSingle(changing, single, soon(), 'test')
      const what = `${name} ${value}`
      expect(await nullIfRefused(posting, /^(23\d{3}|22\w{3})$/, what), what).toBeNull()
    }
  }
  expect(await storedHash()).toBe(before)
})

test('a single transfer is posted once, and not after its time', async () => {
  const single = singleOf(await newSingle())!
  const before = await storedHash()
  await expect(writeSingle(service, single, new Date(Date.now() - 1), 'test')).rejects.toMatchObject({ code: '40001' })
  expect(await storedHash()).toBe(before)
  expect(await writeSingle(service, single, soon(), 'test')).toMatchObject({ version: expect.any(String) })
  expect(await writeSingle(service, single, soon(), 'test')).toBeNull()
})

/** The types of the arrays of `post`, in the order of its parameters, with the fields that are not money. */
const notMoneyIn: Record<string, Set<string>> = {
  posted_ledger: new Set(['mac']),
  posted_wallet: new Set(['mac']),
  posted_transfer: new Set([
    'id',
    'biz_id',
    'reference',
    'remark',
    'batch_id',
    'actor',
    'request_id',
    'client_address',
  ]),
}
const rowTypes = Object.keys(notMoneyIn)

test.each(rowTypes)('no field of %s can be null or another one, whatever its caller knows', async rowType => {
  const { rows: fields } = await owner.query(
    `select attname as name, atttypid::regtype::text as type from pg_attribute
     where attrelid = $1::regclass and attnum > 0 order by attnum`,
    [rowType],
  )
  const before = await storedHash()
  for (const { name, type } of fields) {
    if (notMoneyIn[rowType]!.has(name)) continue
    const values = isOptional.has(name) ? otherValues()[type]! : [null, ...otherValues()[type]!]
    for (const value of values)
      for (const notAfter of [soon(), null]) {
        const batch = await chained(newPostings().slice(0, 1))
        const changing = changingField(rowTypes.indexOf(rowType), rowType, name, value)
        const what = `${name} ${value}`
        expect(
          await nullIfRefused(write(batch, notAfter, changing), /^(23\d{3}|22\w{3}|40001)$/, what),
          what,
        ).toBeNull()
      }
  }
  expect(await storedHash()).toBe(before)
})

/** What a transfer without a hold or an original has as null. */
const isOptional = new Set(['hold_id', 'hold_remaining', 'reverses_id', 'reversed_total'])

/** A connection that changes a field of the first element of one of the arrays; where it has that value already, the element is null. */
function changingField(at: number, rowType: string, field: string, value: string | null): Queryable {
  const array = `$${at + 1}`
  const changed = `(select array_agg(case when n > 1 then e
      when to_jsonb(e) -> '${field}' = to_jsonb(jsonb_populate_record(e, $6::jsonb)) -> '${field}' then null
      else jsonb_populate_record(e, $6::jsonb) end order by n)
    from (select e, row_number() over () as n from unnest(${array}::${rowType}[]) as e) as elements)`
  const query = ({ text, values, name, ...config }: { text: string; values: unknown[]; name: string }) =>
    service.query({
      ...config,
      text: text.replace(array, changed),
      values: [...values, JSON.stringify({ [field]: value })],
    } as never)
  return { query } as unknown as Queryable
}

/** Other shapes for an array of `length` elements, in which subscripts and `unnest` find different elements. */
const shapes: Record<string, (literal: string, length: number) => string | null> = {
  'with another lower bound': (literal, length) => `[0:${length - 1}]=${literal}`,
  'with two dimensions': literal => `{${literal}}`,
  'with an extra element': literal => `${literal.slice(0, -1)},null}`,
  'with a missing element': (_, length) => `{${Array.from({ length: length - 1 }, () => 'null').join(',')}}`,
  'with elements that are null': (_, length) => `{${Array.from({ length }, () => 'null').join(',')}}`,
  'without elements': () => '{}',
  'that is null': () => null,
}

/** A connection that sends one of the arrays of a batch in another shape. */
function reshaping(at: number, length: number, reshape: (literal: string, length: number) => string | null): Queryable {
  const query = ({ values, ...config }: { values: unknown[] }) =>
    service.query({ ...config, values: values.with(at, reshape(values[at] as string, length)) } as never)
  return { query } as unknown as Queryable
}

test.each(Object.keys(shapes))('an array %s is refused and writes nothing', async shape => {
  const before = await storedHash()
  for (const at of rowTypes.keys())
    for (const notAfter of [soon(), null]) {
      const batch = await chained(newPostings())
      const { length } = [batch.ledgers, batch.wallets, batch.transfers][at]!
      const posting = write(batch, notAfter, reshaping(at, length, shapes[shape]!))
      expect(await nullIfRefused(posting, /^(23001|40001)$/), rowTypes[at]).toBeNull()
    }
  expect(await storedHash()).toBe(before)
})

test('entries are written to the wallets that were checked, whatever the subscripts of the wallets', async () => {
  const [{ id, own, euro }] = workspaces as [(typeof workspaces)[number]]
  const key = (walletId: Uuid<'wallet'>) => ({ workspaceId: id, id: walletId })
  const batch = await chained(
    newPostings([workspaces[0]!])
      .slice(0, 1)
      .map(() => requestOf(id, postingOf({ sourceWalletId: own[0]!, targetWalletId: own[1]! }))),
  )
  // Adds an unchanged third wallet. With subscripts from 0, entries would go to the second and third wallets.
  const [third] = await loadWallets(service, [key(euro)])
  batch.wallets.push({ ...third!.wallet, previousMac: third!.wallet.mac })
  const attempted = write(batch, null, reshaping(1, 3, shapes['with another lower bound']!))
  await expect(attempted).rejects.toMatchObject({ code: '23001' })
})

test('valid batches are posted, and the ledger verifies afterwards', async () => {
  for (let at = 0; at < 50; at++)
    expect(await attempt(await chained(newPostings()), at % 2 === 0 ? soon() : null)).toMatchObject({
      now: expect.any(Date),
    })
  // This test calls `post` directly, so the audit lacks its deposits and withdrawals.
  const { violations } = await verifyCore(testCore)
  expect([...new Set(violations.map(({ rule }) => rule))]).toEqual(['transfer-audit'])
})

test('a batch that was decided from outdated rows writes nothing: null without locks, an error with them', async () => {
  const batch = await chained(newPostings())
  expect(await write(batch, null)).toMatchObject({ now: expect.any(Date) })
  expect(await write(batch, soon())).toBeNull()
  await expect(write(batch, null)).rejects.toMatchObject({ code: '40001' })
})

test('a batch of several ledgers, of which one has changed, is refused and writes nothing', async () => {
  const [one, other] = workspaces as [(typeof workspaces)[number], (typeof workspaces)[number]]
  const transferIn = ({ id, own }: typeof one) =>
    requestOf(id, postingOf({ sourceWalletId: own[0]!, targetWalletId: own[1]!, amount: '0.01' }))
  const batch = await chained([transferIn(one), transferIn(other)])
  await write(await chained([transferIn(other)]), null)
  const before = await storedHash()
  await expect(write(batch, soon())).rejects.toMatchObject({ code: '40001' })
  expect(await storedHash()).toBe(before)
})

test('a batch that arrives too late is refused and writes nothing', async () => {
  const batch = await chained(newPostings())
  const before = await storedHash()
  await expect(write(batch, new Date(Date.now() - 10))).rejects.toMatchObject({ code: '40001' })
  expect(await storedHash()).toBe(before)
  expect(await write(batch, soon())).toMatchObject({ now: expect.any(Date) })
})

test('nothing is posted at a time of the past, not even at that of the last posting', async () => {
  const workspace = await newWorkspace()
  const hourAgo = new Date(Date.now() - 3_600_000)
  await owner.query('set session_replication_role = replica')
  await owner.query('update ledger set last_posted_at = $2 where workspace_id = $1', [workspace.id, hourAgo])
  await owner.query('reset session_replication_role')
  const batch = await chained(newPostings([workspace]))
  const earlier = copyOf(batch)
  earlier.ledgers[0]!.lastPostedAt = hourAgo
  await expect(write(earlier, null)).rejects.toMatchObject({ code: '40001' })
  expect(await write(batch, null)).toMatchObject({ now: expect.any(Date) })
})

test('nothing is posted to a halted ledger', async () => {
  const [workspace] = workspaces
  const { rows } = await service.query('select mac from ledger where workspace_id = $1', [workspace!.id])
  await service.query(`select change_ledger_status($1, 'HALTED', 'test', $2)`, [workspace!.id, rows[0].mac])
  const batch = await chained(newPostings([workspace!]), 'OPEN')
  expect(batch.transfers).not.toEqual([])
  expect(await write(batch, soon())).toBeNull()
})
