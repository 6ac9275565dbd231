import { Decimal, type Event, type EventData, type EventType, event, eventTypes } from '@workspace-wallet/contract'
import { expect, test } from 'vitest'
import { endpoints } from './endpoints.ts'
import { eventPageAnswer, eventPageRecord } from './records.ts'

const at = new Date('2026-11-22T00:18:57.594Z')
const balanceAfter = { walletId: 'wal_1', sequence: 1, balanceAfter: new Decimal('899.5') }
const transfer = {
  transferId: 'trf_1',
  bizId: 'rent',
  status: 'COMPLETED' as const,
  amount: '100.5',
  currency: 'USD',
  sourceWalletId: 'wal_1',
  targetWalletId: 'wal_2',
  remark: null,
  reference: null,
  holdId: null,
  batchId: null,
  reversesTransferId: null,
  createdAt: at,
  updatedAt: at,
  completedAt: at,
}
const funding = {
  transferId: 'trf_2',
  bizId: 'trf_2',
  walletId: 'wal_1',
  type: 'DEPOSIT' as const,
  amount: '1',
  currency: 'USD',
  holdId: null,
  createdAt: at,
}
const hold = {
  holdId: 'hld_1',
  bizId: 'booking',
  walletId: 'wal_1',
  currency: 'USD',
  amount: '80',
  capturedAmount: new Decimal(30),
  remainingAmount: new Decimal(50),
  status: 'OPEN' as const,
  expiresAt: at,
  reference: null,
  remark: null,
  createdAt: at,
  updatedAt: at,
}
const change = { walletId: 'wal_1', bizId: null, currency: 'USD', status: 'ACTIVE' as const, by: 'OPERATOR' as const }

const data: EventData = {
  'transfer.completed': {
    transfer,
    balances: { source: balanceAfter, target: balanceAfter },
    holdRemaining: new Decimal(0),
  },
  'wallet.deposited': { funding, balances: { target: balanceAfter }, holdRemaining: null },
  'wallet.withdrawn': { funding, balances: { source: balanceAfter }, holdRemaining: null },
  'hold.created': { hold },
  'hold.released': { hold },
  'hold.expired': { hold },
  'wallet.created': change,
  'wallet.frozen': change,
  'wallet.unfrozen': change,
  'wallet.closed': change,
}

const eventOf = (type: EventType, position: number) =>
  ({ eventId: 'evt_1', position, type, timestamp: at, workspaceId: 'wsp_1', data: data[type] }) as Event

const page = {
  content: eventTypes.map((type, place) => eventOf(type, place + 1)),
  after: 0,
  afterEventId: null,
  types: [],
  last: eventTypes.length,
  lastEventId: 'evt_1',
  more: false,
}

test('an event of each type has a record that matches its schema', () => {
  for (const each of page.content) expect(event.parse(each)).toEqual(each)
  const record = eventPageRecord(page)
  expect(eventPageAnswer.parse(record)).toEqual(record)
  const [completed, deposited, , created, , , opened] = record.content
  expect(completed).toMatchObject({
    timestamp: at.toISOString(),
    data: {
      transfer: { amount: '100.5', completedAt: at.toISOString() },
      balances: { source: { balanceAfter: '899.50' }, target: { balanceAfter: '899.50' } },
      holdRemaining: '0.00',
    },
  })
  expect(deposited!.data).toMatchObject({ funding: { createdAt: at.toISOString() }, holdRemaining: null })
  expect(created!.data).toMatchObject({ hold: { amount: '80', capturedAmount: '30.00', remainingAmount: '50.00' } })
  expect(opened!.data).toEqual(change)
})

test('the schema of events rejects data of another type', () => {
  const record = eventPageRecord(page)
  record.content[0]!.data = record.content.at(-1)!.data
  expect(eventPageAnswer.safeParse(record).success).toBe(false)
})

test.each([
  [
    '7',
    'size=1000&type=hold.created&type=hold.expired',
    { after: 7, size: 500, types: ['hold.created', 'hold.expired'] },
  ],
  ['head', '', { after: 'head', size: undefined, types: undefined }],
])('events after %s are read with the query "%s"', async (after, query, expected) => {
  const reads: object[] = []
  const read = async (input: object) => {
    reads.push(input)
    return page
  }
  const { handle } = endpoints.find(({ path }) => path.endsWith('/events/:after'))!
  const on = { workspaceId: 'wsp_1', caller: { apiKey: 'ak_1', requestId: 'r', address: '::1' } }
  const core = { events: { read: { query: read } } } as never
  const request = { core, on, requireScope() {}, params: { after }, query, headers: {}, body: Buffer.alloc(0) }
  expect(await handle(request)).toEqual(eventPageRecord(page))
  expect(reads).toEqual([{ ...on, ...expected }])
})
