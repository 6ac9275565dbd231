import { expect, test } from 'vitest'
import { withoutBuffers } from '../../../../test/setup/pins.ts'
import { classifyDatabaseError } from './errors.ts'

test.each(['EPIPE', 'ECONNRESET', 'ECONNREFUSED', 'ETIMEDOUT', 'ENOTFOUND', 'EHOSTUNREACH'])(
  '%s means that the database is unavailable',
  code => {
    expect(classifyDatabaseError(Object.assign(new Error(`write ${code}`), { code }))).toBe('unavailable')
  },
)

test.each([
  ['40001', 'conflict'],
  ['40P01', 'conflict'],
  ['55P03', 'timeout'],
  ['57014', 'timeout'],
  ['23505', 'duplicate'],
  ['08006', 'unavailable'],
  ['53300', 'unavailable'],
  ['57P01', 'unavailable'],
  ['23514', 'other'],
  ['42703', 'other'],
])('SQLSTATE %s means %s', (code, fault) => {
  expect(classifyDatabaseError(Object.assign(new Error('refused'), { code }))).toBe(fault)
})

test('an error of PostgreSQL that has no buffer for a page means that the database is unavailable', () => {
  expect(classifyDatabaseError(Object.assign(new Error(withoutBuffers.message), withoutBuffers))).toBe('unavailable')
})

test('an error about a value of a row does not mean that the database is unavailable', () => {
  const error = Object.assign(new TypeError('must be an instance of Buffer'), { code: 'ERR_INVALID_ARG_TYPE' })
  expect(classifyDatabaseError(error)).toBe('other')
})
