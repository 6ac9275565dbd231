import { expect, test } from 'vitest'
import { endpoints } from './endpoints.ts'
import { parseJsonBody } from './json-body.ts'

const headers = { 'content-type': 'application/json' }

/** The fault of a body of the endpoint at a path after /api/v1; null if it is valid. */
function faultOf(path: string, body: unknown): object | null {
  const { body: schema } = endpoints.find(endpoint => endpoint.path === `/api/v1${path}`)!
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  try {
    parseJsonBody(schema!, headers, Buffer.from(text))
    return null
  } catch (error) {
    expect(error).toMatchObject({ code: 'S012' })
    return (error as { details: object }).details
  }
}

const create = { sourceWalletId: 'a', targetWalletId: 'b', amount: '1.00', currency: 'USD', bizId: 'one' }
const reverse = { reversesTransferId: 'a', amount: '1.00', currency: 'USD', bizId: 'two' }
const hold = { walletId: 'a', amount: '1.00', currency: 'USD', expiresInSeconds: 60, bizId: 'three' }
const wallet = { name: 'Main', currency: 'USD', bizId: 'four' }

const reverseFields = 'reversesTransferId, amount, currency, bizId, remark, reference'
const createFields = 'sourceWalletId, targetWalletId, amount, currency, bizId, remark, reference, holdId, holdRemainder'
const transferForms = 'wallet, wsp_…, ak_…, wal_…, trf_…, flw_…'

test.each<[path: string, body: unknown, fault: object | null]>([
  ['/transfer/command/create', { ...create, reference: 'INV-1/2', holdId: 'any', holdRemainder: 'KEEP' }, null],
  ['/transfer/command/create', { ...create, bizId: 'evt_01h455vb4pex5vsknk084sn02q' }, null],
  ['/transfer/command/create', { ...create, bizId: 'hld_1' }, null],
  [
    '/transfer/command/create',
    { ...create, bizId: 'TRF_1' },
    { field: 'bizId', reason: 'RESERVED', limit: transferForms },
  ],
  ['/transfer/command/create', { ...create, holdRemainder: 'KEEP' }, { field: 'holdId', reason: 'REQUIRED' }],
  ['/transfer/command/create', { ...create, reference: '' }, { field: 'reference', reason: 'EMPTY' }],
  ['/transfer/command/create', { ...create, reference: 'a b' }, { field: 'reference', reason: 'NOT_VISIBLE_ASCII' }],
  ['/transfer/command/create', { ...create, reference: null }, { field: 'reference', reason: 'NOT_A_STRING' }],
  ['/transfer/command/create', { ...create, holdId: null }, { field: 'holdId', reason: 'NOT_A_STRING' }],

  ['/transfer/command/reverse', reverse, null],
  ['/transfer/command/reverse', { ...reverse, bizId: undefined }, { field: 'bizId', reason: 'REQUIRED' }],
  [
    '/transfer/command/reverse',
    { ...reverse, amount: '1.001' },
    { field: 'amount', reason: 'TOO_MANY_DECIMALS', limit: 2 },
  ],
  [
    '/transfer/command/reverse',
    { ...reverse, sourceWalletId: 'a' },
    { field: 'sourceWalletId', reason: 'UNKNOWN', limit: reverseFields },
  ],
  [
    '/transfer/command/reverse',
    { ...reverse, 'reverses_transfer-ID': 'a' },
    { field: 'reverses_transfer-ID', reason: 'UNKNOWN', nearest: 'reversesTransferId' },
  ],
  ['/transfer/command/create', { ...create, ammount: 'a' }, { field: 'ammount', reason: 'UNKNOWN', nearest: 'amount' }],

  ['/hold/command/create', hold, null],
  ['/hold/command/create', { ...hold, bizId: 'wallet' }, null],
  ['/hold/command/create', { ...hold, bizId: 'trf_1' }, null],
  ['/hold/command/create', { ...hold, bizId: 'hld_1' }, { field: 'bizId', reason: 'RESERVED', limit: 'hld_…' }],
  ['/hold/command/create', { ...hold, expiresInSeconds: 31_536_000 }, null],
  [
    '/hold/command/create',
    { ...hold, expiresInSeconds: 31_536_001 },
    { field: 'expiresInSeconds', reason: 'TOO_LARGE', limit: 31_536_000 },
  ],
  [
    '/hold/command/create',
    { ...hold, expiresInSeconds: 0 },
    { field: 'expiresInSeconds', reason: 'TOO_SMALL', limit: 1 },
  ],
  ['/hold/command/create', { ...hold, expiresInSeconds: 1.5 }, { field: 'expiresInSeconds', reason: 'NOT_AN_INTEGER' }],
  [
    '/hold/command/create',
    { ...hold, expiresInSeconds: '60' },
    { field: 'expiresInSeconds', reason: 'NOT_AN_INTEGER' },
  ],
  [
    '/hold/command/create',
    { ...hold, expiresInSeconds: null },
    { field: 'expiresInSeconds', reason: 'NOT_AN_INTEGER' },
  ],
  [
    '/hold/command/create',
    '{"walletId":"a","expiresInSeconds":1,"expiresInSeconds":2}',
    { field: 'amount', reason: 'REQUIRED' },
  ],
  [
    '/hold/command/create',
    JSON.stringify(hold).replace('{', '{"expiresInSeconds":1,'),
    { field: 'expiresInSeconds', reason: 'REPEATED' },
  ],
  ['/hold/command/release', { holdId: '' }, null],
  ['/hold/command/release', {}, { field: 'holdId', reason: 'REQUIRED' }],
  ['/hold/command/release', { holdId: 'a', amount: '1.00' }, { field: 'amount', reason: 'UNKNOWN', limit: 'holdId' }],

  ['/wallet/command/create', wallet, null],
  ['/wallet/command/create', { ...wallet, name: '😀'.repeat(128) }, null],
  ['/wallet/command/create', { ...wallet, name: 'x'.repeat(129) }, { field: 'name', reason: 'TOO_LONG', limit: 128 }],
  ['/wallet/command/create', { ...wallet, name: '' }, { field: 'name', reason: 'EMPTY' }],
  ['/wallet/command/create', { ...wallet, name: 'a\u0000' }, { field: 'name', reason: 'BAD_CHARACTER' }],
  ['/wallet/command/create', { ...wallet, bizId: 'wal_' }, { field: 'bizId', reason: 'RESERVED', limit: 'wal_…' }],
  ['/wallet/command/create', { name: 'Main', currency: 'USD' }, { field: 'bizId', reason: 'REQUIRED' }],
  ['/wallet/command/change-status', { walletId: 'a', status: 'CLOSED' }, null],
  [
    '/wallet/command/change-status',
    { walletId: 'a', status: 'OPEN' },
    { field: 'status', reason: 'NOT_ONE_OF', limit: 'ACTIVE, FROZEN, CLOSED' },
  ],
])('POST %s with %j', (path, body, fault) => {
  expect(faultOf(path, body)).toEqual(fault)
})

const withItem = (item: unknown) => ({ transfers: [create, item] })
const itemFault = (field: string, reason: string, limit?: unknown) => ({
  field: field === '' ? 'transfers[1]' : `transfers[1].${field}`,
  reason,
  index: 1,
  ...(limit !== undefined && { limit }),
})

test.each<[body: unknown, fault: object | null]>([
  [withItem(reverse), null],
  [withItem({ ...create, bizId: 'other', holdId: 'a' }), null],
  [withItem({ ...create, amount: '1.001', bizId: 'other' }), itemFault('amount', 'TOO_MANY_DECIMALS', 2)],
  [withItem({ ...reverse, amount: '0' }), itemFault('amount', 'NOT_POSITIVE')],
  [withItem({ ...create, bizId: undefined }), itemFault('bizId', 'REQUIRED')],
  [withItem({ ...reverse, bizId: undefined }), itemFault('bizId', 'REQUIRED')],
  [withItem(create), itemFault('bizId', 'REPEATED')],
  [
    withItem({ ...create, reversesTransferId: 'a', bizId: 'other' }),
    itemFault('sourceWalletId', 'UNKNOWN', reverseFields),
  ],
  [withItem({ ...create, reversesTransferId: null, bizId: 'other' }), itemFault('reversesTransferId', 'NOT_A_STRING')],
  [withItem({ ...create, holdRemainder: 'KEEP', bizId: 'other' }), itemFault('holdId', 'REQUIRED')],
  [withItem({ ...create, fee: '1', bizId: 'other' }), itemFault('fee', 'UNKNOWN', createFields)],
  [
    withItem({ ...create, biz_id: 'other' }),
    { field: 'transfers[1].biz_id', reason: 'UNKNOWN', nearest: 'bizId', index: 1 },
  ],
  [withItem([]), itemFault('', 'NOT_AN_OBJECT')],
  [withItem(null), itemFault('', 'NOT_AN_OBJECT')],
  [JSON.stringify(withItem(reverse)).replace('{"rev', '{"amount":"2.00","rev'), itemFault('amount', 'REPEATED')],
  [
    JSON.stringify(withItem(reverse)).replace('{"rev', '{"__proto__":{},"rev'),
    itemFault('__proto__', 'UNKNOWN', reverseFields),
  ],
  [{}, { field: 'transfers', reason: 'REQUIRED' }],
  [{ transfers: {} }, { field: 'transfers', reason: 'NOT_AN_ARRAY' }],
  [{ transfers: [] }, { field: 'transfers', reason: 'EMPTY' }],
  [
    { transfers: [create], remark: 'a' },
    { field: 'remark', reason: 'UNKNOWN', limit: 'transfers' },
  ],
  [
    { transfers: Array.from({ length: 101 }, (_, at) => ({ ...create, bizId: `item-${at}` })) },
    { field: 'transfers', reason: 'TOO_MANY', limit: 100 },
  ],
  [
    `{"transfers":[${JSON.stringify(create)}],"transfers":[${JSON.stringify(create)}]}`,
    { field: 'transfers', reason: 'REPEATED' },
  ],
])('a batch %j', (body, fault) => {
  expect(faultOf('/transfer/command/batch', body)).toEqual(fault)
})

test('the largest batch is not too large, and a body with more values is refused before it is parsed', () => {
  const item = { ...create, remark: '[,]', reference: '{:}', holdId: 'any', holdRemainder: 'KEEP' }
  const transfers = Array.from({ length: 100 }, (_, at) => ({ ...item, bizId: `item-${at}` }))
  expect(faultOf('/transfer/command/batch', { transfers })).toBeNull()
  const keys = Array.from({ length: 4_096 }, (_, at) => `"${at}":1`).join()
  for (const body of [`{${keys}}`, `{"transfers":[{${keys}}]}`, '['.repeat(4_097), `{${keys}`])
    expect(faultOf('/transfer/command/batch', body)).toEqual({ field: 'body', reason: 'TOO_MANY_VALUES', limit: 4_096 })
})
