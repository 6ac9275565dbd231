/**
 * Lists over large tables: the last page compared with the first, through the signed API; the time of every other order
 * and filter; and the time of a first page in PostgreSQL compared with reading one row by its key.
 */
import { signedHeaders } from '@workspace-wallet/client'
import type { Page } from '@workspace-wallet/contract'
import { table } from '../../../cli/admin/table.ts'
import { query } from '../../../cli/processes/database.ts'
import { sayWithin } from '../../../cli/processes/say.ts'
import type { Findings } from '../measure/report.ts'
import { type Contenders, inRounds, ratiosOf } from '../measure/rounds.ts'
import type { Settings } from '../measure/settings.ts'
import { rounded, spreadOf } from '../measure/spread.ts'
import { type LoadProcess, startLoadProcess } from '../testbed/load-process.ts'
import type { Service, Testbed } from '../testbed/testbed.ts'
import { type Filled, fill } from './lists/fill.ts'
import { timePageReads } from './lists/page-reads.ts'
import { signEvents } from './lists/sign.ts'

const say = sayWithin('lists')
const pageSize = 20
/** How long each page is measured in each round, and each order and filter once. */
const pageTimes = { warmUpMs: 100, measureMs: 500 }
const queryTimes = { warmUpMs: 20, measureMs: 100 }

/** The lists with their filters and sortable fields. */
const lists = {
  wallet_flows: {
    path: ({ wallet }: Filled) => `/api/v1/wallets/${wallet}/flows`,
    queries: ['direction=IN', 'type=TRANSFER', 'type=DEPOSIT', 'direction=OUT&type=TRANSFER&sort=amount,asc'],
    prefix: 'transferIdPrefix',
    sorts: ['createdAt', 'updatedAt', 'amount', 'status'],
  },
  wallet_transfers: {
    path: ({ wallet }: Filled) => `/api/v1/transfer/query/orders/wallet/${wallet}`,
    queries: ['status=COMPLETED', 'currency=USD', 'bizIdPrefix=order-1', 'bizIdPrefix=order-1&sort=amount,desc'],
    prefix: 'transferIdPrefix',
    sorts: ['createdAt', 'updatedAt', 'amount', 'status'],
  },
  orders: {
    path: () => '/api/v1/transfer/query/orders',
    queries: [
      'status=COMPLETED',
      'currency=EUR',
      'currency=USD',
      'bizIdPrefix=order-1',
      'currency=EUR&sort=amount,desc',
    ],
    prefix: 'transferIdPrefix',
    sorts: ['createdAt', 'updatedAt', 'amount', 'status'],
  },
  wallets: {
    path: () => '/api/v1/wallets',
    queries: ['status=FROZEN', 'status=ACTIVE', 'currency=EUR', 'status=FROZEN&currency=EUR'],
    prefix: 'walletIdPrefix',
    sorts: ['createdAt', 'updatedAt', 'amount', 'status', 'name', 'currency'],
  },
  holds: {
    path: () => '/api/v1/hold/query/holds',
    queries: ['status=OPEN', 'status=EXPIRED', 'currency=EUR'],
    prefix: 'bizIdPrefix',
    sorts: ['createdAt', 'updatedAt', 'amount', 'status'],
  },
} as const
const names = Object.keys(lists) as (keyof typeof lists)[]
/** The lists that have a target. */
const targeted = ['wallet_flows', 'wallet_transfers', 'orders', 'events'] as const
/** The largest page of events. */
const eventPageSize = 500

export async function measureLists(testbed: Testbed, settings: Settings): Promise<Findings> {
  const database = await testbed.createDatabase('bench_lists')
  const service = await testbed.startService(database)
  const workspaces: Filled[] = []
  for (const rows of settings.listSizes) workspaces.push(await fill(service, database, rows))
  const largest = workspaces.at(-1)!
  await signEvents(testbed, database, largest, [0, largest.events - eventPageSize])
  say('vacuum and analyze')
  await query(database.ownerUrl, 'vacuum analyze')
  await query(database.ownerUrl, 'checkpoint')

  const load = startLoadProcess()
  const pages = await timePages(service, load, largest, settings)
  const costs = await timeQueries(service, load, workspaces)
  load.stop()
  say('measuring first pages in PostgreSQL')
  const reads = await timePageReads(testbed, database, largest, settings.rounds)
  await service.gateway.stop()
  await service.core.stop()

  const ratios: Findings['ratios'] = { first_page_vs_point_read: reads.ratios }
  for (const name of targeted) ratios[`last_page_${name}`] = ratiosOf(pages[`${name}, last`]!, pages[`${name}, first`]!)
  const pagesMs = Object.fromEntries(Object.entries(pages).map(([name, times]) => [name, spreadOf(times)]))
  const rows = settings.listSizes
  return {
    ratios,
    figures: { lists: { pagesMs, databaseMicros: reads.micros, rows, costsMs: costs } },
    tables: [tableOfCosts(rows, costs)],
  }
}

type Costs = Record<string, Record<string, (number | string)[]>>

function tableOfCosts(rows: number[], costs: Costs): string {
  const lines = Object.entries(costs).flatMap(([name, queries]) =>
    Object.entries(queries).map(([query, cells]) => [`${name}?${query}`, ...cells.map(String)]),
  )
  return table(['ms per page, by number of rows', ...rows.map(String)], lines)
}

/** The times of the first and the last page of each list in default order, in milliseconds, by round. */
async function timePages(service: Service, load: LoadProcess, filled: Filled, settings: Settings) {
  const contenders: Contenders<number> = {}
  for (const name of names) {
    const path = lists[name].path(filled)
    const { page } = await get(service, filled, path)
    contenders[`${name}, first`] = () => time(service, load, filled, path, pageTimes)
    contenders[`${name}, last`] = () => time(service, load, filled, `${path}?page=${page.totalPages - 1}`, pageTimes)
  }
  const events = '/api/v1/event/query/events'
  for (const [name, after] of [['first', 0] as const, ['last', filled.events - eventPageSize] as const])
    contenders[`events, ${name}`] = () => time(service, load, filled, `${events}/${after}`, pageTimes, eventPageSize)
  return inRounds(contenders, settings.rounds, say)
}

/** By list and query: the time of a page at each size in milliseconds, or the error. */
async function timeQueries(service: Service, load: LoadProcess, workspaces: Filled[]): Promise<Costs> {
  const costs: Costs = {}
  for (const name of names) {
    say(`measuring orders and filters of ${name}`)
    const queries = await Promise.all(workspaces.map(filled => queriesOf(service, filled, name)))
    costs[name] = {}
    for (const [at, [label]] of queries[0]!.entries()) {
      const cells: (number | string)[] = []
      for (const [size, filled] of workspaces.entries()) {
        const target = `${lists[name].path(filled)}?${queries[size]![at]![1]}`
        const cost = await time(service, load, filled, target, queryTimes).then(
          rounded,
          (error: Error) => error.message,
        )
        cells.push(cost)
      }
      costs[name][label] = cells
    }
  }
  return costs
}

/** The queries of a list. Each has a label that is the same at every size. */
async function queriesOf(service: Service, filled: Filled, name: keyof typeof lists): Promise<[string, string][]> {
  const { path, queries, prefix, sorts } = lists[name]
  const { content, page } = await get(service, filled, path(filled))
  const newest = content[0]!
  const oldest = (await get(service, filled, `${path(filled)}?page=${page.totalPages - 1}`)).content.at(-1)!
  const middle = new Date((Date.parse(newest.createdAt!) + Date.parse(oldest.createdAt!)) / 2).toISOString()
  const id =
    newest[({ walletIdPrefix: 'walletId', transferIdPrefix: 'transferId', bizIdPrefix: 'bizId' } as const)[prefix]]!
  const last = page.totalPages - 1
  return [
    ['', ''],
    ['page=last', `page=${last}`],
    ['createdFrom=middle', `createdFrom=${middle}`],
    ['createdFrom=middle&page=last', `createdFrom=${middle}&page=${Math.floor(last / 2) - 1}`],
    [`${prefix}=whole`, `${prefix}=${id}`],
    [`${prefix}=all`, `${prefix}=${id.slice(0, 5)}`],
    ...sorts.flatMap(field =>
      ['asc', 'desc'].flatMap((direction): [string, string][] => [
        [`sort=${field},${direction}`, `sort=${field},${direction}`],
        [`sort=${field},${direction}&page=last`, `sort=${field},${direction}&page=${last}`],
      ]),
    ),
    ...queries.map((query): [string, string] => [query, query]),
  ]
}

/** The median time of sequential requests over one connection, in milliseconds. */
async function time(
  { gateway }: Service,
  load: LoadProcess,
  { signer }: Filled,
  target: string,
  times: { warmUpMs: number; measureMs: number },
  size = pageSize,
): Promise<number> {
  const plan = { host: '127.0.0.1', ports: [gateway.port], connections: 1, signers: [signer], ...times }
  const { latencyMs } = await load.run({
    ...plan,
    kind: 'get',
    target: `${target}${target.includes('?') ? '&' : '?'}size=${size}`,
  })
  return latencyMs.p50
}

async function get<Answer = Page<Record<string, string>>>(
  { gateway }: Service,
  { signer }: Filled,
  target: string,
): Promise<Answer> {
  const headers = await signedHeaders(signer, { method: 'GET', target })
  const response = await fetch(gateway.url + target, { headers })
  const { success, code, data } = (await response.json()) as { success: boolean; code: string; data: never }
  if (!success) throw new Error(`GET ${target} failed with ${code}`)
  return data
}
