import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { dataDirOf } from './data-dir.ts'

const root = join(import.meta.dirname, '../..')

test.each([
  ['in the checkout', {}, root, '.data'],
  ['in a folder of the checkout', {}, join(root, 'cli'), join(root, '.data')],
  ['in any other directory', {}, tmpdir(), join(root, '.data')],
  ['with DATA_DIR', { DATA_DIR: 'mine' }, tmpdir(), 'mine'],
  ['with an empty DATA_DIR', { DATA_DIR: '' }, root, '.data'],
])('programs find the data of the checkout that they belong to: %s', (_, environment, from, expected) => {
  expect(dataDirOf(environment, from)).toBe(expected)
})
