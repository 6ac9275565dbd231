import { expect, test } from 'vitest'
import { statement } from './statement.ts'

test('a name that PostgreSQL would truncate is refused', () => {
  expect(statement('n'.repeat(63), 'select 1').name).toHaveLength(63)
  expect(() => statement('n'.repeat(64), 'select 1')).toThrow('more than 63 bytes')
  expect(() => statement('é'.repeat(32), 'select 1')).toThrow('more than 63 bytes')
})

test('a name of another statement is refused', () => {
  statement('one', 'select 1')
  expect(() => statement('one', 'select 2')).toThrow('two statements have the name "one"')
})
