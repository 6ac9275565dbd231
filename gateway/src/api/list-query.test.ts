import { expect, test } from 'vitest'
import { listQuery, parseListQuery, prefixParameter, timeParameter } from './list-query.ts'

const query = listQuery(['createdAt'], { createdFrom: timeParameter, bizIdPrefix: prefixParameter })
const parse = (text: string) => parseListQuery(text, query)

test('a zone whose plus was not escaped is told so; escaped it is read', () => {
  const told = (text: string) => expect.objectContaining({ details: { field: 'createdFrom', reason: text } })
  expect(() => parse('createdFrom=2026-01-31T12:00:00+02:00')).toThrow(told('UNESCAPED_PLUS'))
  expect(() => parse('createdFrom=2026-01-31T12:00:00')).not.toThrow(told('UNESCAPED_PLUS'))
  expect(() => parse('createdFrom=2026-01-31 12:00:00Z')).toThrow(told('NOT_A_TIME'))
  expect(parse('createdFrom=2026-01-31T12:00:00%2B02:00').filter.createdFrom).toEqual(new Date('2026-01-31T10:00:00Z'))
})

test('a text that is too long is told how long it may be', () => {
  const details = { field: 'bizIdPrefix', reason: 'TOO_LONG', limit: 64 }
  expect(() => parse(`bizIdPrefix=${'x'.repeat(65)}`)).toThrow(expect.objectContaining({ details }))
  expect(parse(`bizIdPrefix=${'x'.repeat(64)}`).filter.bizIdPrefix).toHaveLength(64)
})
