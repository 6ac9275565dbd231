import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { ratioOf } from '../tools/bench/rounds.ts'
import { isReached, targets } from '../tools/bench/targets.ts'
import { makeTempDir } from './setup/temp.ts'

const execute = promisify(execFile)
const script = fileURLToPath(new URL('../tools/bench/main.ts', import.meta.url))

test('the benchmark runs, fails on no refusal, and writes what it measured', async () => {
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
  expect(figures.memory.looks.length).toBeGreaterThan(1)
  expect(stdout).toContain('memory_slope')
  expect(stderr).toContain('memory: warming up')
})

test('a part that there is not, and a flag that there is not, are refused in one sentence', async () => {
  const refused = (...args: string[]) => expect(execute(process.execPath, [script, ...args])).rejects
  await refused('--only', 'money').toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^--only must be of .*\.\n$/),
  })
  await refused('--fast').toMatchObject({
    code: 2,
    stderr: expect.stringContaining("Unknown option '--fast': the options are --json"),
  })
})

test('the page about performance has every key, and no other', async () => {
  const page = await readFile(new URL('../docs/performance.md', import.meta.url), 'utf8')
  const keys = [...page.matchAll(/^\| (`.*?) \|/gm)].flatMap(([, cell]) => cell!.replaceAll('`', '').split(', '))
  expect(keys.toSorted()).toEqual(targets.map(({ key }) => key).toSorted())
})

test('a ratio is the median of those of the rounds: a slow round divides out', () => {
  expect(ratioOf([100, 10, 120], [50, 5, 80])).toBe(2)
  expect(ratioOf([10, 30], [10, 10])).toBe(2)
})

test('a target is a bound from below or from above, and reached at the bound', () => {
  expect(isReached({ key: 'k', what: '', bound: 'atLeast', value: 2 }, 2)).toBe(true)
  expect(isReached({ key: 'k', what: '', bound: 'atLeast', value: 2 }, 1.9)).toBe(false)
  expect(isReached({ key: 'k', what: '', bound: 'atMost', value: 2 }, 2)).toBe(true)
  expect(isReached({ key: 'k', what: '', bound: 'atMost', value: 2 }, 2.1)).toBe(false)
})
