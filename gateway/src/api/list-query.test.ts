import { expect, test } from 'vitest'
import { listQuery, parseListQuery, prefixParameter, timeParameter } from './list-query.ts'

const query = listQuery(['createdAt'], { createdFrom: timeParameter, bizIdPrefix: prefixParameter })
const parse = (text: string) => parseListQuery(text, query)

test('a time zone with an unencoded plus has a reason of its own; with an encoded one it is parsed', () => {
  const fault = (reason: string) => expect.objectContaining({ details: { field: 'createdFrom', reason } })
  expect(() => parse('createdFrom=2026-01-31T12:00:00+02:00')).toThrow(fault('UNESCAPED_PLUS'))
  expect(() => parse('createdFrom=2026-01-31T12:00:00')).not.toThrow(fault('UNESCAPED_PLUS'))
  expect(() => parse('createdFrom=2026-01-31 12:00:00Z')).toThrow(fault('NOT_A_TIME'))
  expect(parse('createdFrom=2026-01-31T12:00:00%2B02:00').filter.createdFrom).toEqual(new Date('2026-01-31T10:00:00Z'))
})

test('the error of a text that is too long has the limit', () => {
  const details = { field: 'bizIdPrefix', reason: 'TOO_LONG', limit: 64 }
  expect(() => parse(`bizIdPrefix=${'x'.repeat(65)}`)).toThrow(expect.objectContaining({ details }))
  expect(parse(`bizIdPrefix=${'x'.repeat(64)}`).filter.bizIdPrefix).toHaveLength(64)
})
