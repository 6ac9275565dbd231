import { expect, test } from 'vitest'
import { noSuchEndpoint } from './no-such-endpoint.ts'

test.each([
  ['GET', '/api/v1/transfer/command/create', 'POST /api/v1/transfer/command/create'],
  ['DELETE', '/api/v1/wallets', 'GET /api/v1/wallets'],
  ['POST', '/api/v1/wallets/wal_1', 'GET /api/v1/wallets/wal_1'],
  ['GET', '/api/v1/wallets/', 'GET /api/v1/wallets'],
  ['GET', '/api//v1/wallets', 'GET /api/v1/wallets'],
  ['GET', '/api/V1/Wallets/WAL_1/Balance', 'GET /api/v1/wallets/WAL_1/balance'],
  ['GET', '/api/v2/wallets', 'GET /api/v1/wallets'],
  ['GET', '/api/v1/wallet', 'GET /api/v1/wallets'],
  ['GET', '/api/v1/wallets/wal_1/flow', 'GET /api/v1/wallets/wal_1/flows'],
  ['GET', '/api/v1/transfer/query/order', 'GET /api/v1/transfer/query/orders'],
  ['GET', '/api/v1/transfer/query/orders/wallet/wal_1/', 'GET /api/v1/transfer/query/orders/wallet/wal_1'],
  ['POST', '/api/v1/transfer/query/orders/a%2Fb', 'GET /api/v1/transfer/query/orders/a%2Fb'],
  ['GET', '/api/v1/wallets/wal_1/statement', 'GET /api/v1/wallets/wal_1/statement/{from}/{to}'],
  ['GET', '/api/v1/wallets/wal_1/statements/2026-11-22', 'GET /api/v1/wallets/wal_1/statement/2026-11-22/{to}'],
  ['GET', '/api/v1/event/query/events', 'GET /api/v1/event/query/events/{after}'],
  ['GET', '/api/v1/transfers', 'GET /api/v1/transfer/query/orders'],
  ['POST', '/api/v1/wallets', 'POST /api/v1/wallet/command/create'],
  ['POST', '/api/v1/transfers', 'POST /api/v1/transfer/command/create'],
  ['GET', '/api/v1/orders/rent-1', 'GET /api/v1/transfer/query/orders/rent-1'],
  ['GET', '/api/v1/holds/hold-1', 'GET /api/v1/hold/query/holds/hold-1'],
  ['GET', '/api/v1/events', 'GET /api/v1/event/query/events/{after}'],
  ['PUT', '/api/v1/webhooks', 'POST /api/v1/webhook/command/create'],
  ['GET', '/api/v1/payments', undefined],
  ['GET', '/api/', undefined],
  ['GET', `/api/v1/wallets/${'x'.repeat(200)}/flow`, undefined],
])('%s %s probably means %s', (method, path, nearest) => {
  expect(noSuchEndpoint(method, path).details).toEqual(
    expect.objectContaining(nearest === undefined ? { method } : { method, path, nearest }),
  )
})
