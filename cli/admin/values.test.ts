import { scopes } from '@workspace-wallet/contract'
import { nearest } from '@workspace-wallet/runtime'
import { expect, test } from 'vitest'
import { progressLine } from './progress.ts'
import { parseAmount, parseDuration, parseExpiry, parseScopes, splitList } from './values.ts'

test('an amount is a plain decimal number greater than zero, and is not reformatted', () => {
  for (const text of ['1', '100.50', '0.000000000000000001', '9'.repeat(38)]) expect(parseAmount(text)).toBe(text)
  for (const text of ['', '-5', '+5', '0', '0.00', '1e3', '01', '1,5', '.5', '5.', ' 5', '1'.repeat(39)])
    expect(() => parseAmount(text), text).toThrow(/^must be an amount greater than zero/)
})

test('lists are separated by commas, and empty text is an empty list', () => {
  expect(splitList('203.0.113.7, 2001:db8::/32')).toEqual(['203.0.113.7', '2001:db8::/32'])
  expect(splitList(' ')).toEqual([])
  expect(parseScopes('wallet:read,transfer:create')).toEqual(['wallet:read', 'transfer:create'])
  expect(() => parseScopes('wallet:read,transfer:creat')).toThrow('did you mean transfer:create?')
  expect(() => parseScopes('admin')).toThrow(
    `the valid ones are ${scopes.slice(0, -1).join(', ')} and ${scopes.at(-1)}`,
  )
})

test('durations', () => {
  expect(parseDuration('30s')).toBe(30_000)
  expect(parseDuration('15m')).toBe(900_000)
  expect(parseDuration('24h')).toBe(86_400_000)
  expect(parseDuration('7d')).toBe(604_800_000)
  for (const text of ['', '24', 'h', '1.5h', '-1h', '1 h', '1w', '1h30m', '99999999d'])
    expect(() => parseDuration(text), text).toThrow(/^must be a duration/)
})

test('an expiry is a date, a time with a zone, or a duration from now', () => {
  const now = Date.parse('2026-11-20T12:00:00Z')
  const expiry = (text: string) => parseExpiry(text, now).toISOString()
  expect(expiry('90d')).toBe('2027-02-18T12:00:00.000Z')
  expect(expiry('2027-01-31')).toBe('2027-01-31T00:00:00.000Z')
  expect(expiry('2028-02-29')).toBe('2028-02-29T00:00:00.000Z')
  expect(expiry('2027-01-31T23:30Z')).toBe('2027-01-31T23:30:00.000Z')
  expect(expiry('2027-01-31T23:30:15.5-01:00')).toBe('2027-02-01T00:30:15.500Z')
})

test('days that do not exist, times without a zone and other texts are rejected', () => {
  for (const text of [
    '2027-02-30',
    '2027-02-29T00:00:00Z',
    '2027-13-01',
    '2027-01-31T12:00:00',
    '31.1.2027',
    '2027',
    '',
  ])
    expect(() => parseExpiry(text), text).toThrow(/^must be a date/)
})

test('a mistyped word finds a similar one, and a different word finds none', () => {
  const flags = ['--workspace', '--wallet', '--amount', '--biz-id']
  expect(nearest('--workspce', flags)).toBe('--workspace')
  expect(nearest('--Amount', flags)).toBe('--amount')
  expect(nearest('--bizid', flags)).toBe('--biz-id')
  expect(nearest('--am', flags)).toBe('--amount')
  expect(nearest('--w', flags)).toBe(undefined)
  expect(nearest('--colour', flags)).toBe(undefined)
  expect(nearest('list', ['create', 'close', 'freeze'])).toBe(undefined)
})

test('the progress bar keeps its width, and is full at the end', () => {
  expect(progressLine(0, 12_000, 'flows')).toBe('[........................]   0 %      0 of 12000 flows')
  expect(progressLine(6_000, 12_000, 'flows')).toBe('[############............]  50 %   6000 of 12000 flows')
  expect(progressLine(12_000, 12_000, 'flows')).toBe('[########################] 100 %  12000 of 12000 flows')
  expect(progressLine(0, 0, 'flows')).toBe('[########################] 100 %  0 of 0 flows')
})
