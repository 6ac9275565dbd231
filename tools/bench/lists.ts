/**
 * Lists of tables with so many rows: the last page against the first, through the signed API; what every other order
 * and filter takes; and what a first page takes the database, against reading one row by its key.
 */

import { readFile } from 'node:fs/promises'
import { type Page, uuidFromId } from '@workspace-wallet/contract'
import { table } from '../../cli/admin/table.ts'
import { query } from '../services/database.ts'
import { sayWithin } from '../services/say.ts'
import { signedHeaders } from '../services/signed-headers.ts'
import { type Load, startLoad } from './drive.ts'
import { rounded } from './figures.ts'
import { timePageReads } from './lists/page-reads.ts'
import type { Findings } from './report.ts'
import { type Contenders, inRounds, median, ratioOf } from './rounds.ts'
import type { Settings } from './settings.ts'
import { type Database, makeSigner, type Service, type Signer, type Stage } from './stage.ts'

const say = sayWithin('lists')
const pageSize = 20
/** What there are more of than anybody has. */
const mostWallets = 100_000
/** Of each order and filter. */
const glance = { warmUpMs: 20, measureMs: 100 }
const look = { warmUpMs: 100, measureMs: 500 }

/** A workspace of which the first wallet has `rows` flows. */
export type Filled = { rows: number; signer: Signer; wallet: string; orders: number }

/** The lists, and what can be asked of each. */
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
} as const
const names = Object.keys(lists) as (keyof typeof lists)[]
/** Those with a target. */
const targeted = ['wallet_flows', 'wallet_transfers', 'orders'] as const

export async function measureLists(stage: Stage, settings: Settings): Promise<Findings> {
  const database = await stage.createDatabase('bench_lists')
  const service = await stage.startService(database)
  const workspaces: Filled[] = []
  for (const rows of settings.listSizes) workspaces.push(await fill(service, database, rows))
  say('vacuum and analyze')
  await query(database.ownerUrl, 'vacuum analyze')
  await query(database.ownerUrl, 'checkpoint')

  const load = startLoad()
  const largest = workspaces.at(-1)!
  const pages = await timePages(service, load, largest, settings)
  const costs = await timeQueries(service, load, workspaces)
  load.stop()
  say('the database alone')
  const reads = await timePageReads(database, largest, settings.rounds)
  await service.gateway.stop()
  await service.core.stop()

  const ratios: Record<string, number> = { first_page_vs_point_read: reads.ratio }
  for (const name of targeted) ratios[`last_page_${name}`] = ratioOf(pages[`${name}, last`]!, pages[`${name}, first`]!)
  const pagesMs = Object.fromEntries(Object.entries(pages).map(([name, times]) => [name, rounded(median(times))]))
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
  return table(['ms for a page, by rows', ...rows.map(String)], lines)
}

/** Makes a workspace and fills it. */
export async function fill({ admin }: Service, database: Database, rows: number): Promise<Filled> {
  say(`filling a workspace with ${rows} orders`)
  const signer = await makeSigner(admin, 0)
  const { workspaceId } = signer
  const wallets: string[] = []
  for (const currency of ['USD', 'USD', 'EUR', 'EUR'])
    wallets.push((await admin.wallets.create.mutate({ workspaceId, currency, name: 'Filled' })).walletId)
  const [dollarA, dollarB, euroA, euroB] = wallets.map(id => uuidFromId('wallet', id))
  const orders = rows + Math.floor(rows / 10)
  const values: Record<string, string | number | null | undefined> = {
    workspace: uuidFromId('workspace', workspaceId),
    rows,
    orders,
    wallets: Math.min(rows, mostWallets),
    dollarA,
    dollarB,
    euroA,
    euroB,
  }
  const sql = await readFile(new URL('./lists/fill.sql', import.meta.url), 'utf8')
  await query(
    database.ownerUrl,
    sql.replaceAll(/@(\w+)@/g, (_, name) => String(values[name])),
  )
  return { rows, orders, signer: { ...signer, wallets }, wallet: wallets[0]! }
}

/** In milliseconds, round by round: the first page and the last of each list, in default order. */
async function timePages(service: Service, load: Load, filled: Filled, settings: Settings) {
  const contenders: Contenders<number> = {}
  for (const name of names) {
    const path = lists[name].path(filled)
    const { page } = await get(service, filled, path)
    contenders[`${name}, first`] = () => time(service, load, filled, path, look)
    contenders[`${name}, last`] = () => time(service, load, filled, `${path}?page=${page.totalPages - 1}`, look)
  }
  return inRounds(contenders, settings.rounds, say)
}

/** By list and query: what a page takes at each size in milliseconds, or why it did not come. */
async function timeQueries(service: Service, load: Load, workspaces: Filled[]): Promise<Costs> {
  const costs: Costs = {}
  for (const name of names) {
    say(`orders and filters of ${name}`)
    const queries = await Promise.all(workspaces.map(filled => queriesOf(service, filled, name)))
    costs[name] = {}
    for (const [at, [label]] of queries[0]!.entries()) {
      const cells: (number | string)[] = []
      for (const [size, filled] of workspaces.entries()) {
        const target = `${lists[name].path(filled)}?${queries[size]![at]![1]}`
        const cost = await time(service, load, filled, target, glance).then(rounded, (error: Error) => error.message)
        cells.push(cost)
      }
      costs[name][label] = cells
    }
  }
  return costs
}

/** Each query of a list, with the name under which the sizes are compared. */
async function queriesOf(service: Service, filled: Filled, name: keyof typeof lists): Promise<[string, string][]> {
  const { path, queries, prefix, sorts } = lists[name]
  const { content, page } = await get(service, filled, path(filled))
  const newest = content[0]!
  const oldest = (await get(service, filled, `${path(filled)}?page=${page.totalPages - 1}`)).content.at(-1)!
  const middle = new Date((Date.parse(newest.createdAt!) + Date.parse(oldest.createdAt!)) / 2).toISOString()
  const id = newest[name === 'wallets' ? 'walletId' : 'transferId']!
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

/** The median time of a page, one after the other over one connection, in milliseconds. */
async function time(
  { gateway }: Service,
  load: Load,
  { signer }: Filled,
  target: string,
  times: { warmUpMs: number; measureMs: number },
): Promise<number> {
  const plan = { host: '127.0.0.1', port: gateway.port, connections: 1, signers: [signer], ...times }
  const { latencyMs } = await load.run({
    ...plan,
    kind: 'get',
    target: `${target}${target.includes('?') ? '&' : '?'}size=${pageSize}`,
  })
  return latencyMs.p50
}

async function get({ gateway }: Service, { signer }: Filled, target: string): Promise<Page<Record<string, string>>> {
  const response = await fetch(gateway.url + target, { headers: signedHeaders(signer, 'GET', target) })
  const { success, code, data } = (await response.json()) as { success: boolean; code: string; data: never }
  if (!success) throw new Error(`${target} was answered ${code}`)
  return data
}
