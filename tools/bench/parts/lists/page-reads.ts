/** Measures a page in PostgreSQL: core's statements on a connection without other traffic. */
import { createSecretKey } from 'node:crypto'
import pg from 'pg'
import type { ListDatabase } from '../../../../services/core/src/database/lists/list-reader.ts'
import { type Queryable, run } from '../../../../services/core/src/database/statement.ts'
import { findOrder, listOrders, listOrdersOfWallet } from '../../../../services/core/src/transfers/queries.ts'
import { findWallet, listFlows, listWallets } from '../../../../services/core/src/wallets/queries.ts'
import { readThreadCpuTime } from '../../measure/cpu.ts'
import { inRounds, largestOf, median, ratiosOf } from '../../measure/rounds.ts'
import type { Database, Testbed } from '../../testbed/testbed.ts'
import type { Filled } from './fill.ts'

const warmUps = 200
const repeats = 1_000
const firstPage = { filter: {}, sort: [], page: 0, size: 20 }
/** The pages with a target. */
const pages = ['wallet_flows', 'wallet_transfers', 'orders']

/** A statement as core sends it. */
type Query = { name: string; text: string; values: unknown[] }

/** In microseconds: until the response arrives; the execution time that PostgreSQL reports; the CPU time of its process. */
type Sample = { answered: number; executed: number; cpu: number | null }

/** `ratios`: the time of the slowest page over that of reading one order by its ID, by round. `micros`: the medians. */
export async function timePageReads(
  { ledgerChainKey }: Testbed,
  database: Database,
  { signer, wallet }: Filled,
  rounds: number,
) {
  const client = new pg.Client({ connectionString: database.serviceUrl })
  await client.connect()
  try {
    let last: Query | undefined
    const recorder = {
      query(query: Query) {
        last = query
        return client.query(query)
      },
    } as unknown as Queryable
    const core = { reads: recorder, chainKey: createSecretKey(Buffer.from(ledgerChainKey, 'base64')) }
    const lists: ListDatabase = { read: ({ statement, values }) => run(recorder, statement, values) }
    const recorded = async (call: Promise<unknown>): Promise<Query> => {
      await call
      return last!
    }
    const { workspaceId } = signer
    const newest = (await listOrders(lists, workspaceId, firstPage))!.content[0]!.transferId
    const queries: Record<string, Query> = {
      'one order by its id': await recorded(findOrder(core, workspaceId, newest)),
      'one wallet by its id': await recorded(findWallet(core, workspaceId, wallet)),
      wallet_flows: await recorded(listFlows(lists, workspaceId, wallet, firstPage)),
      wallet_transfers: await recorded(listOrdersOfWallet(lists, workspaceId, wallet, firstPage)),
      orders: await recorded(listOrders(lists, workspaceId, firstPage)),
      wallets: await recorded(listWallets(lists, workspaceId, firstPage)),
    }
    const [{ pid }] = (await client.query('select pg_backend_pid() as pid')).rows
    const contenders = Object.entries(queries).map(([name, query]) => [name, () => time(client, pid, query)] as const)
    const samples = await inRounds(Object.fromEntries(contenders), rounds, () => {})
    const answered = (name: string) => samples[name]!.map(sample => sample.answered)
    const ratios = pages.map(page => ratiosOf(answered(page), answered('one order by its id')))
    return {
      ratios: largestOf(ratios),
      micros: Object.fromEntries(Object.entries(samples).map(([name, all]) => [name, mediansOf(all)])),
    }
  } finally {
    await client.end()
  }
}

async function time(client: pg.Client, pid: number, query: Query): Promise<Sample> {
  for (let count = 0; count < warmUps; count++) await client.query(query)
  const answered: number[] = []
  const cpuBefore = readThreadCpuTime(pid)
  for (let count = 0; count < repeats; count++) {
    const startedAt = performance.now()
    await client.query(query)
    answered.push((performance.now() - startedAt) * 1000)
  }
  const cpuAfter = readThreadCpuTime(pid)
  const values = query.values.map(value => pg.escapeLiteral(String(value))).join(', ')
  const explain = `explain (analyze, timing off, format json) execute ${pg.escapeIdentifier(query.name)} (${values})`
  const executed: number[] = []
  for (let count = 0; count < warmUps; count++) {
    const [row] = (await client.query(explain)).rows
    executed.push(row['QUERY PLAN'][0]['Execution Time'] * 1000)
  }
  return {
    answered: median(answered),
    executed: median(executed),
    cpu: cpuBefore === null || cpuAfter === null ? null : (cpuAfter - cpuBefore) / repeats,
  }
}

function mediansOf(samples: Sample[]): Sample {
  const medianOf = (name: keyof Sample) => Math.round(median(samples.map(sample => sample[name] ?? Number.NaN)))
  return {
    answered: medianOf('answered'),
    executed: medianOf('executed'),
    cpu: samples[0]!.cpu === null ? null : medianOf('cpu'),
  }
}
