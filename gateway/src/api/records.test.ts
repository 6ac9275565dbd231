import { type Event, type EventData, type EventType, eventTypes } from '@workspace-wallet/contract'
import { expect, test } from 'vitest'
import type { z } from 'zod'
import { successBody } from '../http/envelope.ts'
import { endpoints } from './endpoints.ts'
import { eventExamples } from './event-examples.ts'
import { JsonText } from './json-text.ts'
import { eventAnswers, eventPageAnswer } from './records.ts'

const at = '2026-11-22T00:18:57.594Z'
const balanceAfter = { walletId: 'wal_1', sequence: 1, balanceAfter: '899.50' }
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
  capturedAmount: '30.00',
  remainingAmount: '50.00',
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
    holdRemaining: '0.00',
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

test('an event of each type matches its schema', () => {
  expect(eventPageAnswer.parse(page)).toEqual(page)
  // Checked when it is compiled: the schema describes what core answers.
  page satisfies z.output<typeof eventPageAnswer>
})

test.each(eventTypes)('the example of %s matches its schema', type => {
  expect(eventAnswers[type].parse(eventExamples[type])).toEqual(eventExamples[type])
})

test('the schema of events rejects data of another type', () => {
  const content = [{ ...page.content[0]!, data: page.content.at(-1)!.data }]
  expect(eventPageAnswer.safeParse({ ...page, content }).success).toBe(false)
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
    return { ...page, content: JSON.stringify(page.content) }
  }
  const { handle } = endpoints.find(({ path }) => path.endsWith('/events/:after'))!
  const on = { workspaceId: 'wsp_1', caller: { apiKey: 'ak_1', requestId: 'r', address: '::1' } }
  const core = { events: { read: { query: read } } } as never
  const request = { core, on, requireScope() {}, params: { after }, query, headers: {}, body: Buffer.alloc(0) }
  const { text } = (await handle(request)) as JsonText
  expect(text).toBe(JSON.stringify(page))
  expect(JSON.parse(successBody(new JsonText(text)))).toMatchObject({ success: true, code: '2000', data: page })
  expect(reads).toEqual([{ ...on, ...expected }])
})
