import { expect, test } from 'vitest'
import { expectNamedTest } from './setup/named-tests.ts'

/**
 * Each rule of the specification with its tests: `file: part of the test's title`. A rule without a test fails, and so
 * does a test that does not exist.
 */
const rules: Record<string, string[]> = {
  '1. Every key reaches only its own workspace': [
    'test/isolation.test.ts: foreign, absent, malformed and hidden IDs get identical answers',
    'test/isolation.test.ts: a create cannot name a foreign or hidden wallet',
    'test/isolation.test.ts: lists show only resources of the workspace',
  ],
  '1. Every request under /api/ must be signed': [
    'test/codes.test.ts: GA2001 without a key',
    'test/codes.test.ts: GA2012 for a missing, malformed, repeated or different signature',
  ],
  '2.1 The envelope and its six fields, on success': ['test/transfers.test.ts: moves money and returns the order'],
  '2.1 The envelope and its six fields, on failure; data null': [
    'test/codes.test.ts: these tests cover every code',
    'test/hostile.test.ts: random headers and methods',
  ],
  '2.2 content, size, number, totalElements, totalPages': [
    'test/lists.test.ts: by default: page 0, size 20',
    'test/lists.test.ts: an empty collection',
  ],
  '2.3 The transfer order': ['test/transfers.test.ts: moves money and returns the order'],
  '2.4 The fields of a create': ['test/codes.test.ts: S012 for every faulty field'],
  '2.4 Amounts are decimal strings': [
    'test/lists.test.ts: have amounts as they were sent',
    'services/core/src/ledger/posting/decide.test.ts: stores the amount exactly as it was sent',
  ],
  '2.5 The wallet, its balance and its flows': ['test/lists.test.ts: of a wallet, its balance and its flows'],
  '3. A transfer is COMPLETED': ['test/lists.test.ts: of orders say whether they are completed'],
  '4. The nine endpoints and their scopes': [
    'test/codes.test.ts: GA2024 without the scope',
    'test/specification.test.ts: the endpoints are those of section 4',
  ],
  '4.1 GET calls carry no body; path parameters are strings': [
    'test/isolation.test.ts: foreign, absent, malformed and hidden IDs',
    'test/lists.test.ts: a bizId may be percent-encoded in a path',
  ],
  '4.2 POST create takes application/json and answers 200': [
    'test/transfers.test.ts: moves money and returns the order',
    'test/codes.test.ts: S015 for another media type or a content encoding',
  ],
  '4.3 Queries verify workspace ownership': [
    'test/isolation.test.ts: foreign, absent, malformed and hidden IDs get identical answers',
  ],
  '4.4 An endpoint without a declared scope is unreachable': [
    'test/codes.test.ts: 50090201 for every path and method under /api/ that is not an endpoint',
    'gateway/src/http/app.test.ts: an endpoint that declares no scope cannot be mounted',
  ],
  '4.5 Filters': [
    'test/lists.test.ts: of orders: status, currency, creation, both prefixes',
    'test/lists.test.ts: of wallets: status, currency, prefix; of flows',
  ],
  '5.1 The headers': [
    'test/codes.test.ts: GA2013 for every faulty timestamp and nonce',
    'test/codes.test.ts: GA2012 for a missing, malformed, repeated or different signature',
  ],
  '5.1 X-LOCALE affects localized messages': ['gateway/src/locales/locales.test.ts: '],
  '5.2 Body hash, canonical message, signature': ['test/vectors/signing.test.ts: '],
  '5.2 The query string is not signed': [
    'test/codes.test.ts: GA2012 for a missing, malformed, repeated or different signature',
    'test/lists.test.ts: by default: page 0, size 20',
  ],
  '5.2 The body hash covers the bytes sent': ['test/vectors/signing.test.ts: ', 'test/hostile.test.ts: random bodies'],
  '5.3 The pipeline, in its order': [
    'test/pipeline-order.test.ts: of two faults, the one that is checked first decides',
    'test/pipeline-order.test.ts: $name alone',
  ],
  '5.3 Key lookup, status, workspace': [
    'test/codes.test.ts: GA2021 while the key is disabled',
    'test/codes.test.ts: GA2034 without membership, GA2032 without workspace, GA2011 when the key is deleted',
  ],
  '5.3 A nonce is used once, also with another body': [
    'test/codes.test.ts: GA2013 for every faulty timestamp and nonce',
    'test/transfers.test.ts: of 64 requests with one nonce',
  ],
  '5.3 IP whitelist': [
    'test/codes.test.ts: GA2022 for an address outside the IP list',
    'test/addresses.test.ts: X-Forwarded-For gives no access',
  ],
  '5.4 Scopes': [
    'test/codes.test.ts: GA2024 without the scope',
    'test/specification.test.ts: the endpoints are those of section 4',
  ],
  '7. Every code with its status and message': ['test/codes.test.ts: these tests cover every code'],
  '7. Localized text follows X-LOCALE': ['gateway/src/locales/locales.test.ts: '],
  '8.1 page: default, minimum, past the last': [
    'test/lists.test.ts: past the last page',
    'test/lists.test.ts: S012 for %s on every list',
  ],
  '8.1 size: default, minimum, cap': [
    'test/lists.test.ts: a size above 100 is capped',
    'test/lists.test.ts: S012 for %s on every list',
  ],
  '8.1 sort: format, repetition, sortable fields': [
    'test/lists.test.ts: sorts by every sortable field in both directions',
    'test/lists.test.ts: S012 for %s',
  ],
  '8.1 An empty collection': ['test/lists.test.ts: an empty collection'],
  '8.2 Sixty seconds either side': [
    'test/codes.test.ts: GA2013 for every faulty timestamp and nonce',
    'gateway/src/auth/timestamp.test.ts: ',
  ],
  '9. /v1 and the format version': [
    'test/transfers.test.ts: moves money and returns the order',
    'test/codes.test.ts: 50090201 for every path and method under /api/ that is not an endpoint',
  ],
}

test.each(Object.entries(rules))('%s', async (_rule, tests) => {
  expect(tests.length).toBeGreaterThan(0)
  for (const named of tests) await expectNamedTest(named)
})

test('the endpoints are those of section 4, with those scopes', async () => {
  const { endpoints } = await import('../gateway/src/api/endpoints.ts')
  expect(endpoints.map(({ scope, method, path }) => `${scope} ${method} ${path.replace(/:(\w+)/g, '{$1}')}`)).toEqual([
    'wallet:read GET /api/v1/wallets',
    'wallet:read GET /api/v1/wallets/{walletId}',
    'wallet:read GET /api/v1/wallets/{walletId}/balance',
    'wallet:read GET /api/v1/wallets/{walletId}/flows',
    'transfer:read GET /api/v1/transfer/query/orders',
    'transfer:read GET /api/v1/transfer/query/orders/wallet/{walletId}',
    'transfer:read GET /api/v1/transfer/query/orders/{bizId}',
    'transfer:read GET /api/v1/transfer/query/orders/{bizId}/completed',
    'transfer:create POST /api/v1/transfer/command/create',
  ])
})
