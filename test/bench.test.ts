import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { connectFirstRelease, postAsFirstRelease } from '../tools/bench/baseline/first-release.ts'
import { benchId, installBaseline } from '../tools/bench/baseline/install.ts'
import { readEndedCpuTime } from '../tools/bench/cpu.ts'
import type { Machine } from '../tools/bench/machine.ts'
import { postingOf } from '../tools/bench/posting.ts'
import { reportOf } from '../tools/bench/report.ts'
import { ratiosOf } from '../tools/bench/rounds.ts'
import { isReached, targets } from '../tools/bench/targets.ts'
import { createTestDatabase, query } from './setup/database.ts'
import { makeTempDir } from './setup/temp.ts'

const execute = promisify(execFile)
const script = fileURLToPath(new URL('../tools/bench/main.ts', import.meta.url))

test('the benchmark runs without failed requests, and writes its report to a file', async () => {
  const directory = await makeTempDir('bench')
  const file = join(directory, 'bench.json')
  const { stdout, stderr } = await execute(process.execPath, [
    ...[script, '--quick', '--only', 'memory', '--directory', directory, '--json', file],
  ])
  const { machine, ratios, figures } = JSON.parse(await readFile(file, 'utf8'))
  expect(machine).toMatchObject({
    node: process.versions.node,
    cores: expect.any(Number),
    fsyncMicros: expect.any(Number),
  })
  expect(ratios).toEqual({ memory_slope: expect.any(Number) })
  expect(figures.spreads.memory_slope).toMatchObject({ median: ratios.memory_slope, rounds: [ratios.memory_slope] })
  expect(figures.memory.measurements.length).toBeGreaterThan(1)
  expect(stdout).toContain('memory_slope')
  expect(stderr).toContain('memory: warming up')
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

test('the function that pgbench calls makes a transfer in the schema of the first release', async () => {
  const database = await createTestDatabase('template1')
  await installBaseline(database.ownerUrl)
  await query(database.ownerUrl, 'select bench_transfer(bench_id(1), bench_id(1000), bench_id(1001), 0.01)')
  const flows = 'select direction, balance_after::text as balance from flow order by direction'
  expect(await query(database.ownerUrl, flows)).toEqual([
    { direction: 'IN', balance: '100000.01' },
    { direction: 'OUT', balance: '99999.99' },
  ])
  await database.drop()
})

test('the writing of the first release posts a batch in its schema, and wallets continue from the batch before', async () => {
  const database = await createTestDatabase('template1')
  await installBaseline(database.ownerUrl)
  const [workspaceId, first, second] = [benchId(1), benchId(1000), benchId(1001)]
  const transfer = (source: string, target: string) => postingOf(workspaceId, source, target)
  const client = await connectFirstRelease(database.ownerUrl)
  await postAsFirstRelease(client, [transfer(first, second), transfer(first, second)])
  await postAsFirstRelease(client, [transfer(second, first)])
  await client.end()
  const flows = 'select sequence::int, balance_after::text as balance, order_number::int as number from flow'
  expect(await query(database.ownerUrl, `${flows} where wallet_id = $1 order by sequence`, [first])).toEqual([
    { sequence: 1, balance: '99999.99', number: 1 },
    { sequence: 2, balance: '99999.98', number: 2 },
    { sequence: 3, balance: '99999.99', number: 3 },
  ])
  const state =
    'select w.balance::text, w.sequence::int, l.order_count::int from wallet w join ledger l using (workspace_id)'
  expect(await query(database.ownerUrl, `${state} where w.id = $1`, [second])).toEqual([
    { balance: '100000.01', sequence: 3, order_count: 3 },
  ])
  await database.drop()
})

test('docs/performance.md lists exactly the keys of the report', async () => {
  const page = await readFile(new URL('../docs/performance.md', import.meta.url), 'utf8')
  const keys = [...page.matchAll(/^\| (`.*?) \|/gm)].flatMap(([, cell]) => cell!.replaceAll('`', '').split(', '))
  expect(keys.toSorted()).toEqual(targets.map(({ key }) => key).toSorted())
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
