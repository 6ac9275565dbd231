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
    'services/core/src/ledger/decide/decide.test.ts: stores the amount exactly as it was sent',
  ],
  '2.3 What an order is part of: reference, hold, batch, original; what of it is reversed': [
    'test/guides.test.ts: the commands print what the page shows',
    'services/core/src/database/lists/lists.test.ts: reference, holdId, batchId and reversesTransferId select exactly',
  ],
  '2.4 The fields of every command; null and unknown fields are refused by name': [
    'gateway/src/api/bodies.test.ts: POST %s with %j',
  ],
  '2.4 A key that one object of a body repeats is refused': [
    'gateway/src/api/repeated-key.test.ts: finds none in any serialized value, and any key that is repeated',
    'test/wallets.test.ts: a repeated key is S012',
  ],
  '2.5 The wallet, its balance and its flows': ['test/lists.test.ts: of a wallet, its balance and its flows'],
  '2.4 Unknown and repeated fields and null are refused in every body': [
    'gateway/src/api/bodies.test.ts: POST %s with %j',
    'gateway/src/api/bodies.test.ts: a batch %j',
    'gateway/src/api/repeated-key.test.ts: finds none in any serialized value',
  ],
  '2.6 A reversal and its refusals': ['test/codes.test.ts: T001, T006, T007 for a reversal'],
  '2.7 A hold and its refusals': ['test/codes.test.ts: H001, H002, H003, H004'],
  '2.8 A batch, its scope and the place of a refused item': [
    'gateway/src/api/bodies.test.ts: a batch %j',
    'test/codes.test.ts: GA2024 for a batch that reverses a transfer',
    'test/codes.test.ts: the place of a refused item of a batch is in X-Batch-Index',
  ],
  '2.9 Wallets of clients': ['test/codes.test.ts: W003 and W004 for a change of status'],
  '2.5 held, available and sequence of a balance': [
    'services/core/src/holds/queries.test.ts: is in the balance until the hold ends',
    'services/core/src/holds/queries.test.ts: excludes what has expired, written or not',
  ],
  '2.6 A reversal moves money back, in parts, and never more than the original': [
    'services/core/src/holds/holds.test.ts: moves money back, in parts, and never more than the original',
    'services/core/src/ledger/decide/decide.test.ts: returns the same result as the model for every request',
  ],
  '2.6 The checks of a reversal, in their order': [
    'services/core/src/ledger/decide/decide.test.ts: returns the same result as the model for every request',
    'test/codes.test.ts: T001, T006, T007 for a reversal',
  ],
  '2.6 Deposits and withdrawals cannot be reversed': [
    'cli/admin/commands/wallets-and-transfers.test.ts: transfer reverse returns a part of a transfer once, and at most all of it',
  ],
  '2.6 to 2.9, 6. Commands of many clients at once, and their events': [
    'test/model.test.ts: all answers to many clients of two gateways and two cores have one valid order',
    'test/model.test.ts: every answer to one client is that of the model',
  ],
  '2.6 The original does not change': [
    'services/core/src/events/queries.test.ts: an order in the log does not change when it is reversed',
  ],
  '2.7 A hold reserves a part of a wallet': [
    'services/core/src/holds/holds.test.ts: reserves a part of the balance that no other transfer and no other hold can use',
    'services/core/src/ledger/store/change-holds.test.ts: a change that was decided from outdated rows is refused',
  ],
  '2.7 Draws, with KEEP and RELEASE': [
    'services/core/src/holds/holds.test.ts: is captured by transfers, in parts, and never for more than remains',
    'test/guides.test.ts: the commands print what the page shows',
  ],
  '2.7 Release': [
    'services/core/src/holds/holds.test.ts: is released once; releasing it again returns it as it is',
    'services/core/src/holds/holds.test.ts: that ends early leaves its wallet as it was',
  ],
  '2.7 Expiry, whether or not it is written': [
    'services/core/src/holds/holds.test.ts: expires by itself, and its wallet can spend the money from then on',
    'services/core/src/holds/holds.test.ts: is expired by a sweep without any request',
    'services/core/src/holds/queries.test.ts: is EXPIRED since it expired, and has nothing left',
    'services/core/src/holds/queries.test.ts: is in the lists of expired holds and not of open ones',
    'services/core/src/ledger/decide/decide.test.ts: expire before anything else is decided',
    'services/core/src/ledger/decide/decide.test.ts: S002 instead of T002 while more holds are due than one batch expires',
  ],
  '2.7 The checks of a hold and of a draw, in their order; replays': [
    'services/core/src/ledger/decide/decide.test.ts: returns the same result as the model for every request',
    'services/core/src/holds/holds.test.ts: of the same bizId and terms is a replay, and with other terms a conflict',
    'test/codes.test.ts: H001, H002, H003, H004',
  ],
  '2.7 A hold by its holdId or bizId': [
    'services/core/src/holds/queries.test.ts: is found by its holdId and its bizId',
  ],
  '2.8 A batch is made in one commit or not at all, in order': [
    'services/core/src/holds/holds.test.ts: is posted as a whole, in order',
    'services/core/src/holds/holds.test.ts: that fails in one item writes nothing, and names the item',
    'services/core/src/holds/holds.test.ts: may reverse an earlier item, and split a hold',
    'services/core/src/events/queries.test.ts: the transfers of a batch have contiguous positions and its batchId',
  ],
  '2.8 The place of the item that failed': [
    'test/codes.test.ts: the place of a refused item of a batch is in X-Batch-Index',
  ],
  '2.7 A draw needs hold:create': [
    'test/codes.test.ts: GA2024 for a draw on a hold, without hold:create, after S012 and before all that depends on the hold',
  ],
  '2.8 An item that reverses needs transfer:reverse, one that draws hold:create': [
    'test/codes.test.ts: GA2024 for a batch that reverses a transfer, without transfer:reverse, after S012',
    'test/codes.test.ts: GA2024 for a draw on a hold, without hold:create, after S012 and before all that depends on the hold',
  ],
  '2.8 Replays and repetitions of a batch': [
    'services/core/src/ledger/decide/decide.test.ts: returns the same result as the model for every request',
    'gateway/src/core/commands.test.ts: the attempts of a batch name the same transfers, one for each item',
  ],
  '2.9 Clients create wallets, once for each bizId': [
    'test/wallets.test.ts: a wallet can be created, used, frozen, unfrozen and closed',
    'test/wallets.test.ts: a replay answers the wallet as it is now; another name or currency is T005',
    'services/core/src/wallets/operations.test.ts: that is sent many times at once makes one wallet; of different ones, the first',
  ],
  '2.9 The checks of a change of status, in their order': [
    'test/wallets.test.ts: refusals come in the order W001, W002, W004, W003',
    'services/core/src/wallets/operations.test.ts: $state $money money, $change: $result',
  ],
  '2.9 What an operator froze stays frozen': [
    "test/wallets.test.ts: an operator who freezes over the client's freeze takes it over, with an event of its own",
    'test/codes.test.ts: W003 and W004 for a change of status',
  ],
  '2.10 A statement is the sum of the flows of its times': [
    'services/core/src/wallets/statements.test.ts: a statement equals the list of flows of the same times, to the unit',
    'services/core/src/wallets/statements.test.ts: before the first flow, and before the wallet, the balance',
    'services/core/src/wallets/statements.test.ts: from equal to to is an empty statement',
    'test/statements.test.ts: a balance at a time and a statement have exactly the decimals of the currency',
  ],
  '2.10 An answer never changes': [
    'services/core/src/wallets/statements.test.ts: an answer waits for a transaction in progress that has posted before',
    'test/statements.test.ts: an answer is the same when it is asked for again, whatever is posted since',
  ],
  '2.10 The times in the path, and the checks in their order': [
    'test/statements.test.ts: encoded or not, and a plus is a plus',
    'test/statements.test.ts: S012 for the time %s, also of an unknown wallet',
    'services/core/src/wallets/statements.test.ts: from after to, and more than 400 days, are S012; then W001',
    'services/core/src/wallets/statements.test.ts: a time less than 30 seconds ago is S012 with the latest time',
    'services/core/src/wallets/statements.test.ts: totals of too many flows are S012 TOO_EXPENSIVE',
  ],
  '2.12 A receipt says what the ledger says, and has the same bytes each time': [
    'test/receipts.test.ts: says what the order and its flows say',
    'test/receipts.test.ts: has the same bytes each time',
    'test/receipts.test.ts: needs the scope transfer:read; of a deposit, and of nothing, it is T001',
    'test/receipts.test.ts: S001, a log line and a metric',
  ],
  '2.12 Anybody can verify a receipt': [
    'test/vectors/receipts.test.ts: the service writes exactly this receipt',
    'test/vectors/receipts.test.ts: refused by the service and both verifiers',
    'test/receipts.test.ts: in a browser, on a page of another origin',
    'test/receipts.test.ts: the keys are served unsigned, cacheable, to every origin',
    'test/receipts.test.ts: after a change of keys the new one signs',
  ],
  '3. A transfer is COMPLETED': ['test/lists.test.ts: of orders say whether they are completed'],
  '4. An endpoint answers nothing that the OpenAPI document does not list': [
    'test/openapi-fuzz.test.ts: $operationId: a valid request is never an invalid parameter',
    'test/openapi-fuzz.test.ts: $operationId: a faulty request gets a documented answer',
    'test/openapi-fuzz.test.ts: each operation has answered all of its codes, and succeeded',
  ],
  '4. The endpoints and their scopes': [
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
    'services/core/src/database/lists/lists.test.ts: reference, holdId, batchId and reversesTransferId select exactly',
    "services/core/src/database/lists/lists.test.ts: a wallet's holds",
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
  '2.11 Webhooks': [
    'test/webhooks.test.ts: returns the record and a secret, and begins at the end of the log',
    'test/webhooks.test.ts: repeated returns the record as it is now, without the secret, also at another gateway',
    'test/webhooks.test.ts: and update refuse the URL',
    'test/webhooks.test.ts: a workspace has at most 16 webhooks, also when two cores create them at the same time',
    'test/webhooks.test.ts: changes what was sent, at once on every gateway',
    'test/webhooks.test.ts: returns a new secret, with a grace, without one, and again in the grace',
    'test/webhooks.test.ts: moves to any position up to the end of the log, and no further',
    'test/webhooks.test.ts: can be repeated, hides the webhook, and keeps its bizId',
  ],
  '2.11 Deliveries are signed by Standard Webhooks 1.0': [
    'services/core/src/webhooks/leases.test.ts: has signatures that the library of Standard Webhooks accepts, under both secrets in a grace',
    'test/webhooks.test.ts: a delivery is what the API shows of the event',
  ],
  '2.11 Attempts, waits and pauses': [
    'services/core/src/webhooks/leases.test.ts: of failures makes the waits longer, and a success ends them',
    'services/core/src/webhooks/leases.test.ts: of successes before a failure moves the position over them',
    'services/core/src/webhooks/leases.test.ts: replaces the wait',
    'services/core/src/webhooks/leases.test.ts: of 410 pauses the webhook at once, as core',
    'services/core/src/webhooks/leases.test.ts: of a failure after seven days without a success pauses the webhook',
  ],
  '6. The event log': [
    'gateway/src/api/records.test.ts: an event of each type matches its schema',
    'gateway/src/api/list-query.test.ts: a position is a whole number',
    'test/codes.test.ts: E001 for events after the end of the log',
    'test/isolation.test.ts: lists show only resources of the workspace',
  ],
  '6. Positions are 1…n without gaps, in the order of commit': [
    'services/core/src/events/queries.test.ts: the log has all events, with the positions 1 to n',
    'services/core/src/events/queries.test.ts: see each event once, in order, without gaps; and filters see the same events',
  ],
  '6. Pages, head and cursors': [
    'services/core/src/events/queries.test.ts: a page is what the whole log gives: any cursor, size and types',
    'services/core/src/events/queries.test.ts: head is the end of the log',
    'services/core/src/events/queries.test.ts: an empty log begins and ends at 0',
    'services/core/src/events/queries.test.ts: E001 for a cursor after the end, which says where the log ends',
    'gateway/src/api/list-query.test.ts: a position is a whole number up to 2^53 − 1, or head',
    'gateway/src/api/list-query.test.ts: a parameter can be repeated only if the schema says so',
  ],
  '6. A filter passes at most 10,000 events in one call': [
    'services/core/src/database/lists/plans.test.ts: a filter by type reads 10,000 positions at most',
  ],
  '6. What each event says': [
    'services/core/src/events/queries.test.ts: transfer.completed has the order, and both balances after it',
    'services/core/src/events/queries.test.ts: wallet.deposited and wallet.withdrawn have the receipt and the balance',
    'services/core/src/events/queries.test.ts: a hold is as the event left it',
    'services/core/src/events/queries.test.ts: the end of a hold by capture is in its transfer',
    'services/core/src/events/queries.test.ts: hold.expired has the hold as reads show it from its expiry on',
    'services/core/src/events/queries.test.ts: events of wallets say who changed what',
    'gateway/src/api/records.test.ts: an event of each type matches its schema',
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
  '8.3 Body limits': [
    'test/codes.test.ts: S013 for a body over 64 KiB',
    'test/codes.test.ts: a batch may have 256 KiB',
  ],
  '8.3 The size of a body': [
    'test/codes.test.ts: S013 for a body over 64 KiB',
    'test/codes.test.ts: a batch may have 256 KiB',
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
    'wallet:read GET /api/v1/wallets/{walletId}/balance/{at}',
    'wallet:read GET /api/v1/wallets/{walletId}/statement/{from}/{to}',
    'wallet:read GET /api/v1/wallets/{walletId}/flows',
    'transfer:read GET /api/v1/transfer/query/orders',
    'transfer:read GET /api/v1/transfer/query/orders/wallet/{walletId}',
    'transfer:read GET /api/v1/transfer/query/orders/{bizId}',
    'transfer:read GET /api/v1/transfer/query/orders/{bizId}/completed',
    'transfer:read GET /api/v1/transfer/query/orders/{bizId}/receipt',
    'transfer:create POST /api/v1/transfer/command/create',
    'transfer:create POST /api/v1/transfer/command/batch',
    'transfer:reverse POST /api/v1/transfer/command/reverse',
    'hold:read GET /api/v1/hold/query/holds',
    'hold:read GET /api/v1/hold/query/holds/wallet/{walletId}',
    'hold:read GET /api/v1/hold/query/holds/{bizId}',
    'hold:create POST /api/v1/hold/command/create',
    'hold:create POST /api/v1/hold/command/release',
    'event:read GET /api/v1/event/query/events/{after}',
    'wallet:manage POST /api/v1/wallet/command/create',
    'wallet:manage POST /api/v1/wallet/command/change-status',
    'webhook:manage GET /api/v1/webhook/query/webhooks',
    'webhook:manage GET /api/v1/webhook/query/webhooks/{webhookId}',
    'webhook:manage POST /api/v1/webhook/command/create',
    'webhook:manage POST /api/v1/webhook/command/update',
    'webhook:manage POST /api/v1/webhook/command/rotate',
    'webhook:manage POST /api/v1/webhook/command/seek',
    'webhook:manage POST /api/v1/webhook/command/delete',
  ])
})
