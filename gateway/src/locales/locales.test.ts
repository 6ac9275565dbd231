import {
  DomainError,
  type ErrorCode,
  errorTable,
  fieldReasons,
  parseDomainError,
  signingMistakes,
} from '@workspace-wallet/contract'
import { describe, expect, test } from 'vitest'
import { findLocale, locales, localize } from './localize.ts'
import { requestedLocale } from './requested-locale.ts'

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
    ...signingMistakes.map(mistake => ({
      header: 'X-Signature',
      mistake,
      ...(mistake.startsWith('SIGNATURE_')
        ? { reason: 'MALFORMED' }
        : { reason: 'DIFFERENT', seen: { method: 'GET', path: '/', timestamp: '1', nonce: 'n', bodyHash: 'e3b0' } }),
    })),
  ],
  GA2022: [{ address: '203.0.113.7' }],
  GA2024: [{ scope: 'wallet:read' }],
  '50090201': [
    { method: 'GET', path: '/api/v1/nowhere' },
    { method: 'GET', path: '/api/v1/wallet', nearest: 'GET /api/v1/wallets' },
  ],
  S012: [
    ...fieldReasons.map(reason => ({ field: 'amount', reason, limit: 2 })),
    { field: 'bizIdPrefix', reason: 'TOO_EXPENSIVE', limit: 2 },
    { field: 'created_from', reason: 'UNKNOWN', nearest: 'createdFrom' },
    { field: 'transfers[0].remark', reason: 'NOT_A_STRING' },
    { field: 'from', reason: 'TOO_EXPENSIVE', limit: 2 },
    { field: 'to', reason: 'TOO_LARGE', limit: '2026-11-22T00:00:00.000Z' },
  ],
  S002: [{ retryAfterSeconds: 1 }, { retryAfterSeconds: 1, reason: 'TOO_MANY_LISTS' }],
  S004: [undefined, { documentation: '/docs' }],
  S003: [{ transferId: 'trf_01h455vb4pex5vsknk084sn02q' }, undefined],
  S013: [{ limitBytes: 65_536 }, { reason: 'TOO_MANY_PIECES' }],
  S015: [{ reason: 'CONTENT_TYPE' }, { reason: 'CONTENT_ENCODING' }],
  S029: [{ retryAfterSeconds: 7 }],
  W001: [{ field: 'sourceWalletId' }],
  W002: [
    { field: 'sourceWalletId', status: 'FROZEN' },
    { field: 'targetWalletId', status: 'CLOSED' },
  ],
  T003: [
    { currency: 'USD', field: 'targetWalletId', held: 'EUR' },
    { currency: 'USD', field: 'reversesTransferId', held: 'EUR' },
  ],
  T002: [undefined, { index: 3 }],
  T005: [{ bizId: 'rent' }, { bizId: 'rent', index: 0 }],
  T007: [{ remaining: '0.50' }],
  T008: [
    { limit: '100.00', remaining: '100.00', resetsAt: null },
    { limit: '100.00', remaining: '0.50', resetsAt: '2026-11-23T00:00:00.000Z' },
  ],
  H002: [{ status: 'RELEASED' }],
  H003: [{ remaining: '0.50' }],
  E001: [{ position: 7 }],
  E003: [{ limit: 16 }],
}

test.each(Object.keys(errorTable) as ErrorCode[])('%s is recreated from its details when core sends it', code => {
  for (const each of details[code] ?? [undefined, { index: 3 }])
    expect(parseDomainError(code, each)).toMatchObject({ code, ...(each !== undefined && { details: each }) })
})

describe.each(locales)('$tag', locale => {
  test.each(Object.keys(errorTable) as ErrorCode[])('%s has a complete sentence of its own for every case', code => {
    const cases = details[code] ?? [undefined]
    const sentences = cases.map(each => localize(DomainError.fromDetails(code, each), locale))
    for (const sentence of sentences) {
      expect(sentence).toMatch(/[.。?？]$/)
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
    expect(say('S012', { field: 'bizId', reason: 'NOT_A_BIZ_ID' })).toMatch(/bizId.*A-Z.*64/)
    expect(say('S012', { field: 'reference', reason: 'NOT_VISIBLE_ASCII' })).toMatch(/reference.*ASCII.*64/)
    expect(say('S012', { field: 'created_from', reason: 'UNKNOWN', nearest: 'createdFrom' })).toContain('createdFrom')
    expect(say('S012', { field: 'q', reason: 'UNKNOWN', limit: 'page, size' })).toContain('page, size')
    expect(say('50090201', { method: 'GET', path: '/x', nearest: 'POST /y' })).toContain('POST /y')
    expect(say('S003', { transferId: 'trf_1' })).toContain('trf_1')
    expect(say('GA2024', { scope: 'transfer:create' })).toContain('transfer:create')
    expect(say('T003', { currency: 'USD', field: 'walletId', held: 'EUR' })).toMatch(/USD.*walletId.*EUR/)
    expect(say('T007', { remaining: '0.50' })).toContain('0.50')
    expect(say('E001', { position: 7 })).toContain('7')
    expect(say('E003', { limit: 16 })).toContain('16')
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

const localeOf = (headers: Record<string, string>) => requestedLocale(headers)?.tag

test('the language is that of X-LOCALE, else that of Accept-Language, else there is none', () => {
  expect(localeOf({ 'x-locale': 'zh-CN', 'accept-language': 'en' })).toBe('zh-CN')
  expect(localeOf({ 'x-locale': 'tlh', 'accept-language': 'zh' })).toBe('en-US')
  expect(localeOf({ 'accept-language': 'zh' })).toBe('zh-CN')
  expect(localeOf({})).toBeUndefined()
})

// Programs send an empty header for a setting that is not set.
test('an empty header counts as none', () => {
  expect(localeOf({ 'x-locale': '', 'accept-language': 'zh' })).toBe('zh-CN')
  expect(localeOf({ 'x-locale': '' })).toBeUndefined()
  expect(localeOf({ 'accept-language': ' ' })).toBeUndefined()
})

test.each([
  ['*', 'en-US'],
  ['zh-CN', 'zh-CN'],
  ['zh-CN,zh;q=0.9,en;q=0.8', 'zh-CN'],
  ['en-GB,en;q=0.9,zh;q=0.8', 'en-US'],
  ['zh;q=0.3, en;q=0.7', 'en-US'],
  ['zh;q=0.701, en;q=0.7', 'zh-CN'],
  ['zh, en', 'zh-CN'],
  ['en, zh', 'en-US'],
  ['de-CH, zh;q=0.2', 'zh-CN'],
  ['de, fr;q=0.5', 'en-US'],
  ['de, *;q=0.5, zh;q=0.1', 'en-US'],
  ['ZH-hans-cn ; Q=1.000', 'zh-CN'],
  ['zh_CN', 'zh-CN'],
  ['zh-TW', 'zh-CN'],
  ['zhuang', 'en-US'],
  ['i-klingon, x-pig-latin, zh;q=0.1', 'zh-CN'],
  // q=0 excludes.
  ['en;q=0, *', 'zh-CN'],
  ['en;q=0.000, zh;q=0.1', 'zh-CN'],
  ['zh;q=0, *', 'en-US'],
  ['zh;q=0', 'en-US'],
  ['zh-CN;q=0, zh', 'en-US'],
  ['zh;q=0, zh-CN', 'zh-CN'],
  ['zh-TW;q=0, zh', 'zh-CN'],
  ['*;q=0, zh', 'zh-CN'],
  ['en;q=0', undefined],
  ['en-US;q=0, de', undefined],
  ['*;q=0', undefined],
  ['*;q=0, *', undefined],
  // What is malformed is ignored.
  ['zh;q=2, en;q=0.1', 'en-US'],
  ['zh;q=, en;q=0.1', 'en-US'],
  ['zh;q=0.1234, en;q=0.1', 'en-US'],
  ['zh;q=-1, en;q=0.1', 'en-US'],
  ['zh;q=1;q=1, en;q=0.1', 'en-US'],
  ['zh en', 'en-US'],
  [',,, ,zh', 'zh-CN'],
  [';q=1', 'en-US'],
  ['__proto__, constructor', 'en-US'],
  [`${'de,'.repeat(19)}zh`, 'zh-CN'],
  [`${'de,'.repeat(20)}zh`, 'en-US'],
  [`${'a-'.repeat(8000)}`, 'en-US'],
  [`zh;${' '.repeat(16_000)}`, 'en-US'],
  [`${';q=0'.repeat(4000)}`, 'en-US'],
])('Accept-Language: %s selects %s', (accepted, found) => {
  expect(localeOf({ 'accept-language': accepted })).toBe(found)
})
