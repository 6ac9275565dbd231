import { expect, test } from 'vitest'
import { needsServers, testFiles } from './projects.ts'

const inUnit = (files: Record<string, string>) => !needsServers('a.test.ts', path => files[path] ?? null)

test.each([
  ['imports pure code', { 'a.test.ts': "import { a } from './a.ts'", 'a.ts': "import { b } from 'node:path'" }],
  ['names a server in a type only', { 'a.test.ts': "import type { Guarded } from './cli/processes/guarded.ts'" }],
  ['has a function of that name', { 'a.test.ts': "import { test } from 'vitest'\nconst inject = () => 1" }],
  ['contains the import of a file that does not exist', { 'a.test.ts': 'const text = "import(\'./none.ts\')"' }],
  ['imports files that import one another', { 'a.test.ts': "import './b.ts'", 'b.ts': "import './a.test.ts'" }],
])('a test file that %s is in unit', (_, files) => {
  expect(inUnit(files)).toBe(true)
})

test.each([
  ['uses inject', { 'a.test.ts': "import { expect, inject, test } from 'vitest'" }],
  ['uses inject, imported on several lines', { 'a.test.ts': "import {\n  inject,\n  test,\n} from 'vitest'" }],
  ['imports a file that uses inject', { 'a.test.ts': "import './b.ts'", 'b.ts': "import { inject } from 'vitest'" }],
  ['starts a server', { 'a.test.ts': "import './b.ts'", 'b.ts': "import { run } from './cli/processes/guarded.ts'" }],
  ['starts a server on demand', { 'a.test.ts': "const { run } = await import('./cli/processes/guarded.ts')" }],
])('a test file that %s is in system', (_, files) => {
  expect(inUnit(files)).toBe(false)
})

test('each test file is in one project', () => {
  const { unit, system } = testFiles()
  expect(unit).toEqual(expect.arrayContaining(['test/setup/projects.test.ts', 'packages/client/src/signing.test.ts']))
  expect(system).toEqual(
    expect.arrayContaining(['test/transfers.test.ts', 'test/balancer.test.ts', 'cli/processes/postgres.test.ts']),
  )
  expect(unit.filter(path => system.includes(path))).toEqual([])
})
