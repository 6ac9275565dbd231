import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { installBaseline } from '../tools/bench/pgbench.ts'
import { ratioOf } from '../tools/bench/rounds.ts'
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

test('the function that pgbench calls makes a transfer in the current schema', async () => {
  const database = await createTestDatabase()
  await installBaseline(database.ownerUrl)
  await query(database.serviceUrl, 'select bench_transfer(bench_id(1), bench_id(1000), bench_id(1001), 0.01)')
  const flows = 'select direction, balance_after::text as balance from flow order by direction'
  expect(await query(database.ownerUrl, flows)).toEqual([
    { direction: 'IN', balance: '100000.01' },
    { direction: 'OUT', balance: '99999.99' },
  ])
  await database.drop()
})

test('docs/performance.md lists exactly the keys of the report', async () => {
  const page = await readFile(new URL('../docs/performance.md', import.meta.url), 'utf8')
  const keys = [...page.matchAll(/^\| (`.*?) \|/gm)].flatMap(([, cell]) => cell!.replaceAll('`', '').split(', '))
  expect(keys.toSorted()).toEqual(targets.map(({ key }) => key).toSorted())
})

test('a ratio is the median of the ratios of the rounds', () => {
  expect(ratioOf([100, 10, 120], [50, 5, 80])).toBe(2)
  expect(ratioOf([10, 30], [10, 10])).toBe(2)
})

test('a target is a lower or upper bound, and is reached at the bound', () => {
  expect(isReached({ key: 'k', what: '', bound: 'atLeast', value: 2 }, 2)).toBe(true)
  expect(isReached({ key: 'k', what: '', bound: 'atLeast', value: 2 }, 1.9)).toBe(false)
  expect(isReached({ key: 'k', what: '', bound: 'atMost', value: 2 }, 2)).toBe(true)
  expect(isReached({ key: 'k', what: '', bound: 'atMost', value: 2 }, 2.1)).toBe(false)
})
