import { createSecretKey, randomBytes } from 'node:crypto'
import { Decimal, mintId, uuidFromId } from '@workspace-wallet/contract'
import { createLog } from '@workspace-wallet/runtime'
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connect, createTestDatabase, type TestDatabase } from '../../../../../test/setup/database.ts'
import { chooseSeed, Random } from '../../../../../tools/services/random.ts'
import { openCore } from '../../compose.ts'
import { coreSchema } from '../../config.ts'
import { databaseOf } from '../../database/snapshot.ts'
import type { Queryable } from '../../database/statement.ts'
import { appRouter } from '../../router.ts'
import type { Core } from '../../trpc/context.ts'
import { verifyLedger } from '../verify/verify.ts'
import { chainDecisions } from './chain-decisions.ts'
import { decide } from './decide.ts'
import { loadWallets, lockLedgers } from './load.ts'
import { type ChainedPostings, type Posted, post } from './post.ts'
import { type Posting, walletsOf, workspacesOf } from './posting.ts'

/**
 * The database's `post`, called by somebody who holds the service's role: what does not continue from the stored rows is
 * refused, and leaves nothing behind.
 */
const seed = chooseSeed()
console.log(`post: SEED=${seed}`)
const random = new Random(seed)

const chainKey = randomBytes(32)
let database: TestDatabase
let core: Core
let service: pg.Client
let owner: pg.Client
/** In each of two workspaces: two wallets in USD, one in EUR, and the hidden ones. UUIDs. */
let workspaces: { id: string; own: string[]; euro: string; external: string }[]

beforeAll(async () => {
  database = await createTestDatabase()
  const config = coreSchema.parse({
    DATABASE_URL: database.serviceUrl,
    KEY_ENCRYPTION_KEYS: `k1:${randomBytes(32).toString('base64')}`,
    LEDGER_CHAIN_KEY: chainKey.toString('base64'),
    SERVICE_TOKENS: `test:admin:${'x'.repeat(32)}`,
  })
  core = await openCore(config, createLog('test', 'silent').log, new AbortController().signal)
  service = await connect(database.serviceUrl)
  owner = await connect(database.ownerUrl)
  workspaces = [await newWorkspace(), await newWorkspace()]
})
afterAll(async () => {
  await Promise.all([service.end(), owner.end()])
  await core.close()
  await database.drop()
})

async function newWorkspace() {
  const admin = appRouter.createCaller({ core, token: { name: 'test', role: 'admin' } })
  const { workspaceId } = await admin.workspaces.create({ name: 'Test' })
  const newWallet = async (currency: 'USD' | 'EUR') => {
    const { walletId } = await admin.wallets.create({ workspaceId, currency, name: 'Wallet' })
    await admin.wallets.deposit({ workspaceId, walletId, amount: '100.00' })
    return uuidFromId('wallet', walletId)!
  }
  const own = [await newWallet('USD'), await newWallet('USD')]
  const euro = await newWallet('EUR')
  const id = uuidFromId('workspace', workspaceId)!
  const { rows } = await owner.query(
    `select id from wallet where workspace_id = $1 and kind = 'EXTERNAL' and currency = 'USD'`,
    [id],
  )
  return { id, own, euro, external: rows[0].id as string }
}

/** A batch over these workspaces that is right in everything. */
function newPostings(among = workspaces): Posting[] {
  return Array.from({ length: random.int(6) + 1 }, () => {
    const { id, own, external } = random.pick(among)
    const [a, b] = random.chance(0.5) ? own : own.toReversed()
    const type = random.pick(['TRANSFER', 'TRANSFER', 'DEPOSIT', 'WITHDRAWAL'] as const)
    return {
      type,
      workspaceId: id,
      transferId: uuidFromId('transfer', mintId('transfer'))!,
      bizId: null,
      sourceWalletId: type === 'DEPOSIT' ? external : a!,
      targetWalletId: type === 'WITHDRAWAL' ? external : b!,
      amount: random.pick(['0.01', '1.00', '2.50']),
      currency: 'USD',
      remark: null,
      actor: 'test',
      requestId: 'test',
      clientAddress: null,
      mayBePosted: false,
      deadlineMs: Number.POSITIVE_INFINITY,
    }
  })
}

/** What core sends; with a status, what it would send if the ledgers had that one. */
async function chained(postings: Posting[], status?: 'OPEN'): Promise<ChainedPostings> {
  const key = createSecretKey(chainKey)
  const ledgers = await lockLedgers(service, workspacesOf(postings))
  const wallets = await loadWallets(service, walletsOf(postings))
  const decisions = ledgers.map(ledger => {
    const inLedger = ({ workspaceId }: { workspaceId: string }) => workspaceId === ledger.workspaceId
    const own = wallets.filter(({ wallet }) => inLedger(wallet)).map(({ wallet }) => [wallet.id, wallet] as const)
    const state = {
      ...ledger,
      ...(status && { status }),
      wallets: new Map(own),
      byBizId: new Map(),
      byTransferId: new Map(),
    }
    return decide(state, postings.filter(inLedger), wallets[0]!.now, 0)
  })
  return chainDecisions(
    key,
    decisions.filter(({ transfers }) => transfers.length > 0),
  )
}

const one = <Item>(items: readonly Item[]): Item => random.pick(items)
const anotherWallet = (id: string) =>
  one(workspaces.flatMap(({ own, euro, external }) => [...own, euro, external]).filter(each => each !== id))
const byOne = (value: number) => value + one([-2, -1, 1, 2])

/** What makes a batch wrong, each by itself and any two of different names together. */
const damages: Record<string, (batch: ChainedPostings) => void> = {
  'an amount': ({ transfers }) => {
    const { transfer } = one(transfers)
    transfer.amount = one(['0', '-1.00', 'NaN', 'Infinity', '99.99', '1000000.00', '1e38', '1e-19'])
  },
  'a currency': ({ transfers }) => {
    one(transfers).transfer.currency = one(['EUR', 'JPY', 'XXX'])
  },
  'a type': ({ transfers }) => {
    const { transfer } = one(transfers)
    transfer.type = one((['TRANSFER', 'DEPOSIT', 'WITHDRAWAL'] as const).filter(type => type !== transfer.type))
  },
  'a source': ({ transfers }) => {
    const { transfer } = one(transfers)
    transfer.sourceWalletId = anotherWallet(transfer.sourceWalletId)
  },
  'a target': ({ transfers }) => {
    const { transfer } = one(transfers)
    transfer.targetWalletId = anotherWallet(transfer.targetWalletId)
  },
  'a number': ({ transfers }) => {
    const { transfer } = one(transfers)
    transfer.number = transfer.number === null ? 1 : one([null, byOne(transfer.number)])
  },
  'a sequence of a source': ({ transfers }) => {
    const { transfer } = one(transfers)
    transfer.sourceSequence = byOne(transfer.sourceSequence)
  },
  'a sequence of a target': ({ transfers }) => {
    const { transfer } = one(transfers)
    transfer.targetSequence = byOne(transfer.targetSequence)
  },
  'a balance of an entry': ({ transfers }) => {
    const entry = one(one(transfers.map(({ source, target }) => [source, target])))
    entry.balanceAfter = one([new Decimal(entry.balanceAfter).plus('0.01').toFixed(2), '-0.01', 'NaN', 'Infinity'])
  },
  'an order number of an entry': ({ transfers }) => {
    const entry = one(one(transfers.map(({ source, target }) => [source, target])))
    entry.orderNumber = entry.orderNumber === null ? 1 : one([null, byOne(entry.orderNumber)])
  },
  'a workspace': ({ transfers }) => {
    const { transfer } = one(transfers)
    transfer.workspaceId = workspaces.find(({ id }) => id !== transfer.workspaceId)!.id
  },
  'a transfer too few': ({ transfers }) => {
    transfers.splice(random.int(transfers.length), 1)
  },
  'a transfer too many': ({ transfers }) => {
    const { transfer, source, target } = one(transfers)
    const transferId = uuidFromId('transfer', mintId('transfer'))!
    transfers.push({ transfer: { ...transfer, transferId }, source, target })
  },
  'a balance of a wallet': ({ wallets }) => {
    const wallet = one(wallets)
    wallet.balance = one([wallet.balance.plus('1000'), wallet.balance.minus('0.01')])
  },
  'a sequence of a wallet': ({ wallets }) => {
    const wallet = one(wallets)
    wallet.sequence = byOne(wallet.sequence)
  },
  'a count of a wallet': ({ wallets }) => {
    const wallet = one(wallets)
    wallet.orderCount = byOne(wallet.orderCount)
  },
  'a head': ({ wallets }) => {
    one(wallets).head = one([randomBytes(33), Buffer.alloc(0)])
  },
  'a wallet of another version': ({ wallets }) => {
    const wallet = one(wallets)
    wallet.version = String(Number(wallet.version) - 1)
  },
  'a wallet too few': ({ wallets }) => {
    wallets.splice(random.int(wallets.length), 1)
  },
  'a wallet twice': ({ wallets }) => {
    wallets.push(one(wallets))
  },
  'a count of a ledger': ({ ledgers }) => {
    const ledger = one(ledgers)
    ledger.orderCount = byOne(ledger.orderCount)
  },
  'a ledger of another version': ({ ledgers }) => {
    const ledger = one(ledgers)
    ledger.version = String(Number(ledger.version) - 1)
  },
  'a ledger twice': ({ ledgers }) => {
    ledgers.push(one(ledgers))
  },
  'a ledger with another MAC': ({ ledgers }) => {
    one(ledgers).previousMac = randomBytes(32)
  },
  'a wallet with another MAC': ({ wallets }) => {
    one(wallets).previousMac = randomBytes(32)
  },
  'a time': ({ ledgers }) => {
    one(ledgers).lastPostedAt = new Date(Date.now() + one([-3_600_000, -60_000, 60_000, 3_600_000]))
  },
}

/** Rows of their own, so that one damage does not change two places. */
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

/** When a batch that is not locked is too late. */
const soon = () => new Date(Date.now() + 60_000)

/** A fingerprint of everything that is stored of money. */
async function stored(): Promise<string> {
  const tables = ['ledger', 'wallet', 'transfer', 'flow'].map(
    table => `(select string_agg(md5(t::text), '' order by md5(t::text)) from ${table} t)`,
  )
  return (await owner.query(`select md5(concat(${tables.join(', ')})) as all`)).rows[0].all
}

/** Sends a batch; null when it was refused, and otherwise what was posted. */
async function attempt(batch: ChainedPostings, notAfter: Date | null): Promise<Posted | null> {
  return post(service, batch, notAfter).catch(error => {
    expect((error as pg.DatabaseError).code, String(error)).toMatch(/^(23001|40001|23502|23505|23514|22P02)$/)
    return null
  })
}

const names = Object.keys(damages)
const pairs = names.flatMap((first, at) => names.slice(at + 1).map(second => [first, second]))

test('a batch that is wrong in one place, or in two, is refused, and nothing is written', async () => {
  const wrong = [...Array.from({ length: 40 }, () => names.map(name => [name])).flat(), ...pairs, ...pairs, ...pairs]
  const before = await stored()
  let refused = 0
  for (const chosen of wrong) {
    const right = await chained(newPostings())
    const batch = copyOf(right)
    try {
      for (const name of chosen) damages[name]!(batch)
    } catch {
      // Nothing is left to damage.
      continue
    }
    expect(await attempt(batch, random.chance(0.5) ? soon() : null), chosen.join(' and ')).toBeNull()
    refused++
  }
  expect(refused).toBeGreaterThan(1_000)
  expect(await stored()).toBe(before)
})

const arrayCount = 36
/** Other shapes of an array of `length` elements. Subscripts and unnest disagree on what such an array contains. */
const shapes: Record<string, (literal: string, length: number) => string | null> = {
  'with another lower bound': (literal, length) => `[0:${length - 1}]=${literal}`,
  'with two dimensions': literal => `{${literal}}`,
  'with one element more': literal => `${literal.slice(0, -1)},null}`,
  'with one element less': (_, length) => `{${Array.from({ length: length - 1 }, () => 'null').join(',')}}`,
  'without elements': () => '{}',
  'that is null': () => null,
}

/** A connection that sends one of the arrays of a batch in another shape. */
function reshaping(at: number, reshape: (literal: string, length: number) => string | null): Queryable {
  const query = ({ values, ...config }: { values: unknown[] }) => {
    const literal = values[at] as string
    return service.query({ ...config, values: values.with(at, reshape(literal, literal.split(',').length)) } as never)
  }
  return { query } as unknown as Queryable
}

test.each(Object.keys(shapes))('an array %s is refused, and nothing is written', async shape => {
  const before = await stored()
  for (let at = 0; at < arrayCount; at++) {
    const batch = await chained(newPostings())
    const attempted = post(reshaping(at, shapes[shape]!), batch, null)
    await expect(attempted, `parameter ${at + 1}`).rejects.toMatchObject({ code: '23001' })
  }
  expect(await stored()).toBe(before)
})

test('entries are written to the wallets that were checked, however the wallets are numbered', async () => {
  const [{ id, own, euro }] = workspaces as [(typeof workspaces)[number]]
  const key = (walletId: string) => ({ workspaceId: id, id: walletId })
  const batch = await chained(
    newPostings([workspaces[0]!])
      .slice(0, 1)
      .map(posting => ({ ...posting, type: 'TRANSFER', sourceWalletId: own[0]!, targetWalletId: own[1]! })),
  )
  // A third wallet, which stays as it is: with numbers from 0, entries would go to the second wallet and to the third.
  const [third] = await loadWallets(service, [key(euro)])
  batch.wallets.push({ ...third!.wallet, previousMac: third!.wallet.mac })
  const attempted = post(
    reshaping(7, (literal, length) => `[0:${length - 1}]=${literal}`),
    batch,
    null,
  )
  await expect(attempted).rejects.toMatchObject({ code: '23001' })
})

test('batches that are right are posted, and the ledger is sound afterwards', async () => {
  for (let at = 0; at < 50; at++)
    expect(await attempt(await chained(newPostings()), at % 2 === 0 ? soon() : null)).toMatchObject({
      now: expect.any(Date),
    })
  // Deposits that did not come through core are not in the audit.
  const options = {
    database: databaseOf(core.reads),
    chainKey: createSecretKey(chainKey),
    workspaceId: null,
    checkpoint: null,
  }
  for await (const event of verifyLedger(options))
    if (event.kind === 'result')
      expect([...new Set(event.report.violations.map(({ rule }) => rule))]).toEqual(['transfer-audit'])
})

test('a batch that was decided from rows that have changed since is refused, or answered as such', async () => {
  const batch = await chained(newPostings())
  expect(await post(service, batch, null)).toMatchObject({ now: expect.any(Date) })
  expect(await post(service, batch, soon())).toBeNull()
  await expect(post(service, batch, null)).rejects.toMatchObject({ code: '40001' })
})

test('a batch that arrives too late is answered as such', async () => {
  const batch = await chained(newPostings())
  const before = await stored()
  expect(await post(service, batch, new Date(Date.now() - 10))).toBeNull()
  expect(await stored()).toBe(before)
  expect(await post(service, batch, soon())).toMatchObject({ now: expect.any(Date) })
})

test('a halted ledger takes nothing', async () => {
  const [workspace] = workspaces
  await service.query(`select change_ledger_status($1, 'HALTED', 'test', mac) from ledger where workspace_id = $1`, [
    workspace!.id,
  ])
  const batch = await chained(newPostings([workspace!]), 'OPEN')
  expect(batch.transfers).not.toEqual([])
  expect(await post(service, batch, soon())).toBeNull()
})
