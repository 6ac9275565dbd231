/** A real Prometheus scrapes a running service of two places: every series that rules and dashboards name exists there. */
import { errorTable } from '@workspace-wallet/contract'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { call, createPath } from '../setup/client.ts'
import { createTestDatabase, execute, type TestDatabase } from '../setup/database.ts'
import { transferOrder } from '../setup/order.ts'
import { type ReplicatedPostgres, startReplicatedPostgres } from '../setup/replicated-postgres.ts'
import { type System, startSystem } from '../setup/system.ts'
import { makeTempDir } from '../setup/temp.ts'
import { until } from '../setup/until.ts'
import { type Prometheus, startPrometheus } from './prometheus.ts'
import { readPanelQueries, readRules, selectorsOf } from './rules.ts'

let postgres: ReplicatedPostgres
let second: TestDatabase
let system: System
let prometheus: Prometheus
const hasEnded = new AbortController()
let traffic: Promise<void>
beforeAll(async () => {
  // With a standby, whose lag is a metric.
  postgres = await startReplicatedPostgres()
  // Somebody who has to receive the log.
  await execute(postgres.ownerUrl, `select pg_create_physical_replication_slot('archive', true)`)
  second = await createTestDatabase()
  const coreEnvironment = {
    DATABASE_URLS: second.serviceUrl,
    DATA_DIR: await makeTempDir('data'),
    VERIFY_EVERY_MINUTES: '60',
  }
  system = await startSystem({ database: postgres, cores: 2, gateways: 2, coreEnvironment })
  const couriers = [await system.startCourier(), await system.startCourier()]
  const hosts = (urls: (string | undefined)[]) => urls.map(url => new URL(url!).host)
  const cores = hosts(system.cores.map(({ url }) => url))
  const gateways = hosts(system.gateways.map(({ internalUrl }) => internalUrl))
  const internals = hosts(couriers.map(({ internalUrl }) => internalUrl))
  prometheus = await startPrometheus({
    'core-1:8081': cores[0]!,
    'core-2:8081': cores[1]!,
    'gateway-1-internal:8082': gateways[0]!,
    'gateway-2-internal:8082': gateways[1]!,
    'courier-1-internal:8083': internals[0]!,
    'courier-2-internal:8083': internals[1]!,
  })
  traffic = makeTraffic()
}, 300_000)
afterAll(async () => {
  hasEnded.abort()
  await traffic
  await prometheus?.stop()
  await system?.stop()
  await second?.drop()
  await postgres?.stop()
})

/** Transfers, a list, a request with a wrong secret, and a call of no procedure, one after another: rates need several scrapes. */
async function makeTraffic(): Promise<void> {
  for (let at = 0; !hasEnded.signal.aborted; at++) {
    const through = { ...system, baseUrl: system.gateways[at % 2]!.url }
    await call(through, 'POST', createPath, { ...transferOrder(system), amount: '0.01', bizId: `traffic-${at}` })
    await call(through, 'GET', '/api/v1/wallets')
    await call(through, 'GET', '/api/v1/wallets', undefined, { secret: 'wrong' })
    const headers = { authorization: `Bearer ${system.courierToken}` }
    await fetch(`${system.cores[at % 2]!.url}/trpc/wallets.other`, { headers })
  }
}

/** The label of a code. A service in order answers few of them, so they are compared with the list. */
const isCode = (label: string) => label === 'code'

test('every metric, label and value that a rule or a dashboard names exists', async () => {
  const expressions = [...(await readRules()), ...(await readPanelQueries())].map(({ expr }) => expr)
  const codes = [...Object.keys(errorTable), '2000', 'ok', 'FORBIDDEN']
  for (const { metric, matchers, groupedBy } of expressions.flatMap(selectorsOf)) {
    // Prometheus writes ALERTS while an alert is pending or fires.
    if (metric === 'ALERTS') continue
    const conditions = matchers.filter(({ label }) => !isCode(label)).map(({ label, value }) => `${label}=~"${value}"`)
    const labels = [...matchers.map(({ label }) => label), ...(groupedBy ?? [])].map(label => `${label}!=""`)
    const selector = `${metric}{${[...conditions, ...labels].join(', ')}}`
    await until(`${selector} exists`, async () => (await prometheus.query(selector)).length > 0)
    for (const { value } of matchers.filter(({ label }) => isCode(label)))
      for (const code of value.split('|')) expect(codes, metric).toContain(code)
  }
}, 300_000)

test('every panel of the dashboards has series, with the labels of its legend', async () => {
  for (const { dashboard, panel, expr, legend } of await readPanelQueries()) {
    const what = `${dashboard}, ${panel}: ${expr}`
    const series = await until(what, async () => {
      const found = await prometheus.query(expr)
      return found.length > 0 && found
    })
    const named = Array.from(legend.matchAll(/\{\{(\w+)\}\}/g), ([, label]) => label!)
    for (const { metric } of series) expect(Object.keys(metric), what).toEqual(expect.arrayContaining(named))
  }
}, 300_000)

test('no rule mixes the figures of several places', async () => {
  for (const { alert, record, expr } of await readRules())
    for (const { metric, groupedBy } of selectorsOf(expr)) {
      const places = await prometheus.query(`count by (place) (${metric}{place!=""})`)
      if (places.length > 1 && groupedBy) expect(groupedBy, `${alert ?? record}: ${metric}`).toContain('place')
    }
})

test('a service in order fires no alert', async () => {
  // The traffic has wrong signatures. Whether creates meet their objectives depends on how busy the machine of the test is.
  const isExpected = /^(SignaturesRejected|Creates\w+)$/
  const firing = await prometheus.query('ALERTS{alertstate="firing"}')
  expect(firing.map(({ metric }) => metric.alertname!).filter(name => !isExpected.test(name))).toEqual([])
})
