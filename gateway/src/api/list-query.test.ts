import { expect, test } from 'vitest'
import {
  enumParameter,
  listQuery,
  parseListQuery,
  parseQuery,
  positionParameter,
  prefixParameter,
  sizeParameter,
  timeParameter,
} from './list-query.ts'

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

test('a parameter can be repeated only if the schema says so, and not with the same value', () => {
  const parameters = { size: sizeParameter(100, 500), type: enumParameter(['a', 'b']) }
  const parseEvents = (text: string) => parseQuery(text, { parameters, repeatable: 'type' })
  expect(parseEvents('')).toEqual({})
  expect(parseEvents('type=a&size=501&type=b')).toEqual({ size: 500, type: ['a', 'b'] })
  const fault = (details: object) => expect.objectContaining({ code: 'S012', details })
  expect(() => parseEvents('type=a&type=a')).toThrow(fault({ field: 'type', reason: 'REPEATED' }))
  expect(() => parseEvents('size=1&size=1')).toThrow(fault({ field: 'size', reason: 'REPEATED' }))
  expect(() => parseEvents('size=0')).toThrow(fault({ field: 'size', reason: 'TOO_SMALL', limit: 1 }))
  expect(() => parseEvents('type=c')).toThrow(fault({ field: 'type', reason: 'NOT_ONE_OF', limit: 'a, b' }))
  const unknown = (field: string) =>
    field === 'types'
      ? { field, reason: 'UNKNOWN', nearest: 'type' }
      : { field, reason: 'UNKNOWN', limit: 'size, type' }
  for (const name of ['page', 'sort', 'types', '__proto__', 'toString'])
    expect(() => parseEvents(`${name}=1`)).toThrow(fault(unknown(name)))
})

test('a position is a whole number up to 2^53 − 1, or head', () => {
  const reasonOf = (text: string) => positionParameter.safeParse(text).error?.issues[0]?.message
  expect(['0', '9007199254740991', 'head'].map(text => positionParameter.parse(text))).toEqual([0, 2 ** 53 - 1, 'head'])
  expect(reasonOf('9007199254740992')).toBe('TOO_LARGE')
  for (const text of ['', '-1', '+1', '1.0', '1e3', 'HEAD', ' 1', '٣']) expect(reasonOf(text)).toBe('NOT_A_POSITION')
})

test.each([
  ['created_from', 'createdFrom'],
  ['CreatedFrom', 'createdFrom'],
  ['createdfrm', 'createdFrom'],
  ['pages', 'page'],
  ['Size', 'size'],
  ['bizIdPrefixes', 'bizIdPrefix'],
])('the unknown parameter %s is probably %s', (field, nearest) => {
  const details = { field, reason: 'UNKNOWN', nearest }
  expect(() => parse(`${field}=1`)).toThrow(expect.objectContaining({ details }))
})

test.each(['offset', 'q', 'cursor', '', 'x'.repeat(65)])(
  'for the unknown parameter %j, all known ones are named',
  name => {
    const field = name.length > 64 ? `${'x'.repeat(64)}…` : name
    const details = { field, reason: 'UNKNOWN', limit: 'page, size, sort, createdFrom, bizIdPrefix' }
    expect(() => parse(`${name}=1`)).toThrow(expect.objectContaining({ details }))
  },
)
