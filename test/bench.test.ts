import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { runOpenLoop } from '../tools/bench/load/open-loop.ts'
import type { LoadPlan } from '../tools/bench/load/plan.ts'
import { readEndedCpuTime } from '../tools/bench/measure/cpu.ts'
import type { Machine } from '../tools/bench/measure/report.ts'
import { reportOf } from '../tools/bench/measure/report.ts'
import { ratiosOf } from '../tools/bench/measure/rounds.ts'
import { isReached, targets } from '../tools/bench/measure/targets.ts'
import { installPlainSchema } from '../tools/bench/testbed/plain/install.ts'
import { drawChart } from '../tools/charts/chart.ts'
import { createTestDatabase, query } from './setup/database.ts'
import { listen } from './setup/listen.ts'
import { makeTempDir } from './setup/temp.ts'

const execute = promisify(execFile)
const script = fileURLToPath(new URL('../tools/bench/main.ts', import.meta.url))

test('the benchmark runs without failed requests, and writes its report to a file', async () => {
  const directory = await makeTempDir('bench')
  const file = join(directory, 'bench.json')
  const { stdout, stderr } = await execute(process.execPath, [
    ...[script, '--quick', '--only', 'memory,overload,edge,storage', '--directory', directory, '--json', file],
  ])
  const { machine, ratios, figures } = JSON.parse(await readFile(file, 'utf8'))
  expect(machine).toMatchObject({
    node: process.versions.node,
    cores: expect.any(Number),
    fsyncMicros: expect.any(Number),
  })
  const keys = ['memory_slope', 'overload_goodput', 'balance_vs_express', 'gateway_vs_nginx', 'gateway_cpu_vs_nginx']
  expect(ratios).toEqual(Object.fromEntries(keys.map(key => [key, expect.any(Number)])))
  expect(figures.spreads.memory_slope).toMatchObject({ median: ratios.memory_slope, rounds: [ratios.memory_slope] })
  expect(figures.overload).toMatchObject({ rejectedWithoutRetryAfter: { median: 0 }, unansweredShare: { median: 0 } })
  expect(figures.storage.stretches.at(-1)).toMatchObject({ transfers: 2_000, perSecond: expect.any(Number) })
  expect(Object.keys(figures.storage.seconds)).toEqual([
    ...[
      'vacuum (freeze) of all transfers',
      'checkpoint',
      expect.stringMatching(/^whole verification of [5-9]\d{3} flows$/),
    ],
    ...['backup', 'unpacking the backup', expect.stringMatching(/^incremental verification of \d+ flows$/)],
  ])
  expect(figures.memory.measurements.length).toBeGreaterThan(1)
  expect(stdout).toContain('memory_slope')
  expect(stderr).toContain('memory: warming up')
})

test('an open loop counts every arrival once, also those that find no idle connection, and rejections without Retry-After', async () => {
  const body = '{"code":"S002"}'
  let count = 0
  const server = createServer((_, response) => {
    if (++count % 2 === 0) response.setHeader('Retry-After', '1')
    response.setHeader('Content-Length', body.length)
    response.statusCode = 503
    setTimeout(() => response.end(body), 20)
  })
  const plan: LoadPlan = {
    ...{ host: '127.0.0.1', ports: [await listen(server)], connections: 2, warmUpMs: 0, measureMs: 500 },
    ...{ signers: [{ apiKey: '', apiSecret: 'x', wallets: [] }], kind: 'plain', target: '/', arrivalsPerSecond: 500 },
  }
  const { perSecond, failures, openLoop } = await runOpenLoop(plan)
  server.close()
  expect(perSecond).toBe(0)
  expect(failures).toEqual({ S002: count })
  expect(openLoop!.unsent).toBeGreaterThan(0)
  expect(openLoop!.arrivals).toBe(openLoop!.unsent + count)
  expect(openLoop!.withoutRetryAfter).toBe(Math.ceil(count / 2))
  expect(openLoop!.failureLatencyMs.p50).toBeGreaterThanOrEqual(19)
})

test('an unknown part and an unknown flag are rejected in one sentence', async () => {
  const rejected = (...args: string[]) => expect(execute(process.execPath, [script, ...args])).rejects
  await rejected('--only', 'money').toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^--only must be a list of .*\.\n$/),
  })
  await rejected('--fast').toMatchObject({
    code: 2,
    stderr: expect.stringContaining("Unknown option '--fast': the options are --json"),
  })
})

test('the benchmark measures the service and one transaction per request side by side, and draws a chart', async () => {
  const directory = await makeTempDir('bench')
  const file = join(directory, 'bench.json')
  const charts = join(directory, 'charts')
  await execute(process.execPath, [
    ...[script, '--quick', '--only', 'connections,reads', '--directory', directory, '--json', file, '--charts', charts],
  ])
  const { ratios, figures } = JSON.parse(await readFile(file, 'utf8'))
  expect(ratios).toMatchObject({
    transfer_c1_vs_transaction: expect.any(Number),
    transfer_c256_vs_transaction: expect.any(Number),
    p99_c256_vs_transaction: expect.any(Number),
    page_p50_c16_vs_transaction: expect.any(Number),
  })
  expect(figures.connections['transaction 16'].cpuMicros).toMatchObject({ express: {}, postgres: {}, redis: {} })
  const chart = await readFile(join(charts, 'connections.svg'), 'utf8')
  expect(chart).toContain('one transaction per request')
})

test('a chart has the points of each series in each panel', async () => {
  const points = [1, 4, 16].flatMap(x => [
    { series: 'slow', x, y: 100 * x },
    { series: 'fast', x, y: 400 * x },
  ])
  const svg = await drawChart([{ title: 'Rate', xTitle: 'connections', yTitle: 'per second', points }])
  expect(svg).toMatch(/^<svg/)
  expect(svg.match(/aria-roledescription="point"/g)).toHaveLength(points.length)
})

test('the function that pgbench calls makes a transfer in the plain schema', async () => {
  const database = await createTestDatabase('template1')
  await installPlainSchema(database.ownerUrl)
  await query(database.ownerUrl, 'select bench_transfer(bench_id(1000), bench_id(1001), 0.01)')
  const entries = 'select amount::float8, balance_after::float8 as balance from entry order by id'
  expect(await query(database.ownerUrl, entries)).toEqual([
    { amount: -0.01, balance: 99999.99 },
    { amount: 0.01, balance: 100000.01 },
  ])
  const wallets = `select balance::float8 from wallet where id in (bench_id(1000), bench_id(1001)) order by id`
  expect(await query(database.ownerUrl, wallets)).toEqual([{ balance: 99999.99 }, { balance: 100000.01 }])
  await database.drop()
})

test('docs/performance.md lists exactly the keys of the report', async () => {
  const page = await readFile(new URL('../docs/performance.md', import.meta.url), 'utf8')
  const keys = [...page.matchAll(/^\| (`.*?) \|/gm)].flatMap(([, cell]) => cell!.replaceAll('`', '').split(', '))
  expect(keys.toSorted()).toEqual(targets.map(({ key }) => key).toSorted())
})

test('docs/measurements.md has results of keys of the benchmark, and says whether they reach their targets', async () => {
  const page = await readFile(new URL('../docs/measurements.md', import.meta.url), 'utf8')
  const rows = [...page.matchAll(/^\| (`[a-z]\w+_.*?) \| ([\d., to]+) \| (yes|no) \|$/gm)]
  expect(rows.length).toBeGreaterThan(5)
  for (const [row, cell, measured, reached] of rows) {
    const keys = cell!.replaceAll('`', '').split(', ')
    const values = measured!.split(/, | to /).map(Number)
    // One value for each key, or a range for all.
    const isReachedBy = keys.map((key, at) => {
      const target = targets.find(each => each.key === key)
      expect(target, key).toBeDefined()
      return measured!.includes(' to ')
        ? values.every(value => isReached(target!, value))
        : isReached(target!, values[at]!)
    })
    expect(isReachedBy.every(Boolean) ? 'yes' : 'no', row).toBe(reached)
  }
})

test('the report has the median of the ratios of the rounds, with the lowest and the highest', () => {
  const machine = {} as Machine
  const key = ratiosOf([100, 10, 120], [50, 5, 80])
  const { ratios, figures } = reportOf(machine, [{ ratios: { key, even: [1, 3] }, figures: {} }])
  expect(ratios).toEqual({ key: 2, even: 2 })
  expect(figures.spreads.key).toEqual({ median: 2, low: 1.5, high: 2, rounds: [2, 2, 1.5] })
})

test('the CPU time of a process that has exited is that of its parent', async () => {
  const before = readEndedCpuTime()
  await execute(process.execPath, ['-e', 'while (process.cpuUsage().user < 200_000);'])
  const after = readEndedCpuTime()
  if (process.platform === 'linux') expect(after! - before!).toBeGreaterThanOrEqual(190_000)
  else expect(after).toBeNull()
})

test('a target is a lower or upper bound, and is reached at the bound', () => {
  expect(isReached({ key: 'k', what: '', bound: 'atLeast', value: 2 }, 2)).toBe(true)
  expect(isReached({ key: 'k', what: '', bound: 'atLeast', value: 2 }, 1.9)).toBe(false)
  expect(isReached({ key: 'k', what: '', bound: 'atMost', value: 2 }, 2)).toBe(true)
  expect(isReached({ key: 'k', what: '', bound: 'atMost', value: 2 }, 2.1)).toBe(false)
})
