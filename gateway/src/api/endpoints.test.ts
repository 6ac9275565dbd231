import { expect, test } from 'vitest'
import { endpoints, noSuchEndpoint } from './endpoints.ts'
import { parseQuery } from './list-query.ts'

test.each(endpoints)('the example of $method $path matches its schemas', endpoint => {
  const { params, query, body, answer, example, path } = endpoint
  expect(params.strict().safeParse(example.params ?? {}).error).toBeUndefined()
  expect(path.match(/(?<=:)\w+/g) ?? []).toEqual(Object.keys(params.shape))
  expect('query' in example).toBe(query !== undefined)
  if (query) parseQuery(example.query!, query)
  expect('body' in example).toBe(body !== undefined)
  expect(body?.safeParse(example.body).error).toBeUndefined()
  expect(answer.safeParse(example.data).error).toBeUndefined()
})

/** The first record of an answer. */
function recordOf(data: Answer): Answer {
  const [record] = data.content ?? data.transfers ?? [data]
  return record!
}
type Answer = Record<string, unknown> & { content?: Answer[]; transfers?: Answer[] }

test('a schema rejects an answer with an additional or a missing field', () => {
  for (const { answer, example } of endpoints) {
    const data = structuredClone(example.data) as Answer
    const record = recordOf(data)
    expect(answer.safeParse(data).success).toBe(true)
    record.additional = 'x'
    expect(answer.safeParse(data).success).toBe(false)
    delete record.additional
    delete record[Object.keys(record)[0]!]
    expect(answer.safeParse(data).success).toBe(false)
  }
})

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
  ['GET', '/api/v1/transfers', undefined],
  ['GET', '/api/', undefined],
  ['GET', `/api/v1/wallets/${'x'.repeat(200)}/flow`, undefined],
])('%s %s probably means %s', (method, path, nearest) => {
  expect(noSuchEndpoint(method, path).details).toEqual(
    expect.objectContaining(nearest === undefined ? { method } : { method, path, nearest }),
  )
})
