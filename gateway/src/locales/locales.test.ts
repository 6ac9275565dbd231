import { DomainError, type ErrorCode, errorTable, fieldReasons } from '@workspace-wallet/contract'
import { describe, expect, test } from 'vitest'
import { findLocale, locales, localize } from './localize.ts'

/** Every kind of details that a code can have. */
const details: { [Code in ErrorCode]?: unknown[] } = {
  GA2021: [{ reason: 'DISABLED' }, { reason: 'EXPIRED' }],
  GA2013: [
    { header: 'X-Timestamp', reason: 'MISSING' },
    { header: 'X-Nonce', reason: 'REPEATED' },
    { header: 'X-Nonce', reason: 'MALFORMED' },
    { header: 'X-Nonce', reason: 'USED' },
    { header: 'X-Timestamp', reason: 'OFF', secondsOff: 75 },
    { header: 'X-Timestamp', reason: 'MILLISECONDS', seconds: '1800000000' },
    { header: 'X-Timestamp', reason: 'OFF', secondsOff: -3600 },
  ],
  GA2012: [
    { header: 'X-Signature', reason: 'MISSING' },
    {
      header: 'X-Signature',
      reason: 'DIFFERENT',
      seen: { method: 'GET', path: '/api/v1/wallets', timestamp: '1', nonce: 'n', bodyHash: 'e3b0' },
    },
  ],
  GA2022: [{ address: '203.0.113.7' }],
  GA2024: [{ scope: 'wallet:read' }],
  '50090201': [{ method: 'GET', path: '/api/v1/nowhere' }],
  S012: [
    ...fieldReasons.map(reason => ({ field: 'amount', reason, limit: 2 })),
    { field: 'bizIdPrefix', reason: 'TOO_EXPENSIVE', limit: 2 },
  ],
  S002: [{ retryAfterSeconds: 1 }, { retryAfterSeconds: 1, reason: 'TOO_MANY_LISTS' }],
  S003: [{ transferId: 'trf_1' }, undefined],
  S013: [{ limitBytes: 65_536 }],
  S015: [{ reason: 'CONTENT_TYPE' }, { reason: 'CONTENT_ENCODING' }],
  S029: [{ retryAfterSeconds: 7 }],
  W001: [{ field: 'sourceWalletId' }],
  W002: [
    { field: 'sourceWalletId', status: 'FROZEN' },
    { field: 'targetWalletId', status: 'CLOSED' },
  ],
  T003: [{ currency: 'USD' }],
  T002: [undefined, { index: 3 }],
  T005: [{ bizId: 'rent' }, { bizId: 'rent', index: 0 }],
  T007: [{ remaining: '0.50' }],
  H002: [{ status: 'RELEASED' }],
  H003: [{ remaining: '0.50' }],
  E001: [{ position: 7 }],
}

describe.each(locales)('$tag', locale => {
  test.each(Object.keys(errorTable) as ErrorCode[])('%s has a complete sentence of its own for every case', code => {
    const cases = details[code] ?? [undefined]
    const sentences = cases.map(each => localize(DomainError.fromDetails(code, each), locale))
    for (const sentence of sentences) {
      expect(sentence).toMatch(/[.。]$/)
      expect(sentence).not.toMatch(/undefined|null|NaN|\[object/)
    }
    expect(new Set(sentences).size).toBe(sentences.length)
  })

  test('tells a person how to fix the call', () => {
    const say = (code: ErrorCode, each: unknown) => localize(DomainError.fromDetails(code, each), locale)
    expect(say('GA2013', { header: 'X-Timestamp', reason: 'OFF', secondsOff: -75 })).toContain('75')
    expect(say('GA2012', details.GA2012![1])).toContain('GET | /api/v1/wallets | 1 | n | e3b0')
    expect(say('S012', { field: 'amount', reason: 'TOO_MANY_DECIMALS', limit: 2 })).toMatch(/amount.*2/)
    expect(say('GA2013', { header: 'X-Timestamp', reason: 'MILLISECONDS', seconds: '1800000000' })).toContain(
      '1800000000',
    )
    expect(say('S012', { field: 'remark', reason: 'TOO_LONG', limit: 256 })).toMatch(/remark.*256/)
    expect(say('S012', { field: 'createdFrom', reason: 'UNESCAPED_PLUS' })).toMatch(/createdFrom.*%2B/)
    expect(say('S003', { transferId: 'trf_1' })).toContain('trf_1')
    expect(say('GA2024', { scope: 'transfer:create' })).toContain('transfer:create')
    expect(say('T007', { remaining: '0.50' })).toContain('0.50')
    expect(say('E001', { position: 7 })).toContain('7')
    expect(say('T002', { index: 3 })).toContain('transfers[3]')
    expect(say('S012', { field: 'transfers[3].amount', reason: 'NOT_POSITIVE', index: 3 })).toMatch(
      /^transfers\[3\]\.amount/,
    )
  })
})

test('each language has its own sentences', () => {
  const sentences = locales.map(locale => localize(new DomainError('T002'), locale))
  expect(new Set(sentences).size).toBe(locales.length)
})

test.each([
  ['en-US', 'en-US'],
  ['en-GB', 'en-US'],
  ['EN', 'en-US'],
  ['zh-CN', 'zh-CN'],
  ['ZH-cn', 'zh-CN'],
  ['zh', 'zh-CN'],
  ['zh_CN', 'zh-CN'],
  ['zh-Hans-CN', 'zh-CN'],
  ['de-DE', 'en-US'],
  ['', 'en-US'],
  ['zhuang', 'en-US'],
  ['*', 'en-US'],
])('the tag %s selects %s', (tag, found) => {
  expect(findLocale(tag).tag).toBe(found)
})
