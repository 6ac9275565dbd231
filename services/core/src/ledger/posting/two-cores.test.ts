import type { KeyObject } from 'node:crypto'
import { randomUUID } from 'node:crypto'
import { DomainError, type Uuid, uuidFromId } from '@workspace-wallet/contract'
import { createLog } from '@workspace-wallet/runtime'
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { chooseSeed, Random } from '../../../../../cli/processes/random.ts'
import { openTestCore, type TestCore, verifyCore } from '../../../../../test/setup/core.ts'
import { query, type TestDatabase } from '../../../../../test/setup/database.ts'
import { postingOf, requestOf } from '../../../../../test/setup/ledger-states.ts'
import { openPool } from '../../database/pool.ts'
import type { Transfer } from '../chain/transfer.ts'
import type { LedgerRequest, Posting } from '../decide/requests.ts'
import type { LedgerState } from '../decide/state.ts'
import { Halts } from '../store/halt.ts'
import { postBatch } from './batch.ts'
import { KnownWorkspaces } from './known-workspaces.ts'
import { RememberedLedgers } from './remembered-ledgers.ts'
import { Shards } from './shards.ts'

/**
 * Two cores post to the same workspaces from memory, while sessions are terminated and wallets are frozen. Every result
 * must match the stored rows: posted once, or not at all.
 */
const seed = chooseSeed()
console.log(`two cores: SEED=${seed}`)
const random = new Random(seed)

const { log } = createLog('test', 'silent')
const initialCents: bigint = 10_000n
const waves = 150
const postingsPerWave = 16

let database: TestDatabase
let chainKey: KeyObject
let testCore: TestCore
let cores: { shards: Shards; pool: pg.Pool; remembered: CountingMemory }[]
/** The first workspace uses both cores at a time, the others one core. `wallets` are UUIDs. */
let workspaces: {
  id: Uuid<'workspace'>
  workspaceId: string
  wallets: Uuid<'wallet'>[]
  walletIds: string[]
  core: number
}[]

class CountingMemory extends RememberedLedgers {
  recallCount = 0
  distrustCount = 0

  override recall(requests: readonly LedgerRequest[], now: Date): Map<Uuid<'workspace'>, LedgerState> | null {
    const ledgers = super.recall(requests, now)
    if (ledgers) this.recallCount++
    return ledgers
  }

  override distrust(workspaceIds: readonly Uuid<'workspace'>[]): void {
    this.distrustCount++
    super.distrust(workspaceIds)
  }
}

const admin = () => testCore.as('admin')

beforeAll(async () => {
  testCore = await openTestCore()
  ;({ database, chainKey } = testCore)
  cores = Array.from({ length: 2 }, () => {
    const pool = openPool(database.serviceUrl, {
      name: 'ledger',
      max: 2,
      pipeline: true,
      queryTimeoutMs: 4_000,
      chainKey,
    })
    // Fewer than there are wallets, so that some are evicted.
    const store = { pool, chainKey, log, remembered: new CountingMemory(12), halts: new Halts(pool, chainKey, log) }
    const post = (requests: LedgerRequest[]) => postBatch(store, requests)
    const workspaces = new KnownWorkspaces(pool)
    return {
      shards: new Shards({ shards: 2, queueLimit: 1_000, postBatch: post, workspaces }),
      pool,
      remembered: store.remembered,
    }
  })
  workspaces = await Promise.all(Array.from({ length: 4 }, (_, at) => newWorkspace(at % 2)))
})
afterAll(async () => {
  await Promise.all(cores.map(({ pool }) => pool.end()))
  await testCore.close()
})

async function newWorkspace(coreAt: number) {
  const { workspaceId } = await admin().workspaces.create({ name: 'Test' })
  const walletIds: string[] = []
  for (let at = 0; at < 4; at++) {
    const { walletId } = await admin().wallets.create({ workspaceId, currency: 'USD', name: 'Wallet' })
    await admin().wallets.deposit({ workspaceId, walletId, amount: '100.00', bizId: randomUUID() })
    walletIds.push(walletId)
  }
  const wallets = walletIds.map(id => uuidFromId('wallet', id)!)
  return { id: uuidFromId('workspace', workspaceId)!, workspaceId, wallets, walletIds, core: coreAt }
}

/** Some postings repeat an earlier bizId, with the same or another amount. Calm ones have no bizId and small amounts. */
function newPosting({ id, wallets }: (typeof workspaces)[number], isCalm: boolean): Sent {
  const named = !isCalm && random.chance(0.3) ? random.int(60) : null
  const [source, target] = named === null ? random.shuffled(wallets) : [wallets[named % 3], wallets[3]]
  // Most transfers have the first wallet as target.
  const isHot = named === null && source !== wallets[0] && random.chance(0.8)
  const posting = postingOf({
    bizId: named === null ? null : `order ${named}`,
    sourceWalletId: source!,
    targetWalletId: isHot ? wallets[0]! : target!,
    amount: random.pick(isCalm ? ['0.01', '0.02'] : ['0.01', '1.00', '1.00', '1.00', '7.50', '80.00']),
  })
  return { workspaceId: id, posting, mayBePosted: false }
}

type Sent = { workspaceId: string; posting: Posting; mayBePosted: boolean }
type Answer = Sent & { transfer: Transfer | null; code: string | null }

async function send(sent: Sent, { shards }: (typeof cores)[number]): Promise<Answer> {
  const { workspaceId, posting, mayBePosted } = sent
  const deadlineMs = performance.now() + 60_000
  try {
    const [made] = await shards.post(requestOf(workspaceId, posting, { mayBePosted, deadlineMs }))
    return { ...sent, transfer: (made as { transfer: Transfer }).transfer, code: null }
  } catch (error) {
    if (!(error instanceof DomainError)) throw error
    return { ...sent, transfer: null, code: error.code }
  }
}

/** Terminates a random session that posts, in any state. */
async function terminateSession(): Promise<void> {
  await query(
    database.ownerUrl,
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and usename <> current_user and application_name <> 'core reads'
     order by random() limit 1`,
  )
}

async function freezeAndUnfreeze(): Promise<void> {
  const { workspaceId, walletIds } = random.pick(workspaces)
  const walletId = random.pick(walletIds)
  await admin().wallets.changeStatus({ workspaceId, walletId, status: 'FROZEN' })
  await admin().wallets.changeStatus({ workspaceId, walletId, status: 'ACTIVE' })
}

async function sendAll(): Promise<Answer[]> {
  const answers: Promise<Answer>[] = []
  for (let wave = 0; wave < waves; wave++) {
    const isCalm = random.chance(0.6)
    const sent = Array.from({ length: postingsPerWave }, () => {
      const at = isCalm ? 1 + random.int(workspaces.length - 1) : random.int(workspaces.length)
      const workspace = workspaces[at]!
      return send(newPosting(workspace, isCalm), cores[at === 0 ? random.int(2) : workspace.core]!)
    })
    answers.push(...sent)
    // Occasionally the traffic of each workspace moves to a random core.
    if (random.chance(0.1)) for (const workspace of workspaces) workspace.core = random.int(2)
    const disturbances = [random.chance(0.3) && terminateSession(), random.chance(0.1) && freezeAndUnfreeze()]
    // Some waves overlap.
    await Promise.all([...disturbances, ...(random.chance(0.7) ? sent : [])])
  }
  return Promise.all(answers)
}

/** Resolves an unknown outcome as clients do: by retrying with the same transferId. */
async function resolveUnknown(answer: Answer): Promise<Answer> {
  if (answer.code !== 'S003') return answer
  return send({ ...answer, mayBePosted: true }, random.pick(cores))
}

const cents = (amount: string) => BigInt(amount.replace('.', ''))

/** Each workspace posts with one core, again from its memory, with the other core, and then from an outdated memory. */
async function sendInTurn(): Promise<Answer[]> {
  const answers: Answer[] = []
  for (const { id: workspaceId, wallets } of workspaces)
    for (const core of [cores[0], cores[0], cores[1], cores[0]]) {
      const posting = postingOf({ sourceWalletId: wallets[0]!, targetWalletId: wallets[1]!, amount: '0.01' })
      answers.push(await send({ workspaceId, posting, mayBePosted: false }, core!))
    }
  return answers
}

test('every result of two cores matches the stored rows', async () => {
  const sent = [...(await sendInTurn()), ...(await sendAll())]
  const answers = await Promise.all(sent.map(resolveUnknown))
  const rows = await query(
    database.ownerUrl,
    `select id, biz_id, amount::text, source_wallet_id, target_wallet_id from transfer where type = 'TRANSFER' order by position`,
  )
  const stored = new Map(rows.map(row => [row.id as string, row]))

  const posted = answers.filter(({ posting, transfer }) => transfer?.transferId === posting.transferId)
  const replayed = answers.filter(({ posting, transfer }) => transfer && transfer.transferId !== posting.transferId)
  const refused = answers.filter(({ transfer }) => !transfer)
  expect([...stored.keys()].toSorted()).toEqual(posted.map(({ posting }) => posting.transferId).toSorted())
  for (const { posting } of posted)
    expect(stored.get(posting.transferId)).toMatchObject({ biz_id: posting.bizId, amount: posting.amount })
  for (const { posting, transfer } of replayed)
    expect(stored.get(transfer!.transferId)).toMatchObject({ biz_id: posting.bizId, amount: posting.amount })
  const codes = new Set(refused.map(({ code }) => code))
  expect(['T002', 'T005', 'W002', 'S002']).toEqual(expect.arrayContaining([...codes]))

  const balances = new Map(workspaces.flatMap(({ wallets }) => wallets.map(id => [id, initialCents] as const)))
  for (const row of rows)
    for (const [id, amount] of [
      [row.source_wallet_id as Uuid<'wallet'>, -cents(row.amount as string)],
      [row.target_wallet_id as Uuid<'wallet'>, cents(row.amount as string)],
    ] as const)
      balances.set(id, balances.get(id)! + amount)
  const wallets = await query(database.ownerUrl, `select id, balance::text from wallet where kind = 'CUSTOMER'`)
  expect(new Map(wallets.map(({ id, balance }) => [id, cents(balance as string)]))).toEqual(balances)

  expect(await verifyCore(testCore)).toMatchObject({ ok: true, violations: [] })
  expect((await admin().ledger.halted()).ledgers).toEqual([])
  // Both ways of posting were used, and some remembered ledgers were outdated.
  expect(posted.length).toBeGreaterThan(300)
  expect(replayed.length).toBeGreaterThan(0)
  console.log(
    'STATS',
    posted.length,
    replayed.length,
    cores.map(({ remembered }) => [remembered.recallCount, remembered.distrustCount]),
  )
  const memories = cores.map(({ remembered }) => remembered)
  expect(memories.reduce((sum, { recallCount }) => sum + recallCount, 0)).toBeGreaterThan(5)
  expect(memories.reduce((sum, { distrustCount }) => sum + distrustCount, 0)).toBeGreaterThan(0)
})
