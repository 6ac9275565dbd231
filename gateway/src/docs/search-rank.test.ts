import { expect, test } from 'vitest'
import { type Entry, findEntries } from './browser/search-rank.ts'

const entry = (kind: Entry['kind'], title: string, within = '', text = ''): Entry => ({
  kind,
  title,
  within,
  url: '',
  text,
})
const entries = [
  entry('field', 'sourceWalletId', 'Create a transfer order', 'The wallet that the funds leave.'),
  entry('guide', 'Refund a customer', '', 'Reverse the transfer, as a whole or in parts.'),
  entry('error', 'T002 INSUFFICIENT_BALANCE', '', 'The amount exceeds the available balance.'),
  entry('operation', 'Reverse a transfer', 'POST /api/v1/transfer/command/reverse'),
  entry('operation', 'Create a transfer order', 'POST /api/v1/transfer/command/create'),
  entry('event', 'transfer.completed'),
]
const titles = (query: string) => findEntries(entries, query).map(({ title }) => title)

test.each([
  ['t002', ['T002 INSUFFICIENT_BALANCE']],
  ['insufficient', ['T002 INSUFFICIENT_BALANCE']],
  ['reverse', ['Reverse a transfer', 'Refund a customer']],
  ['reverse a transfer', ['Reverse a transfer', 'Refund a customer']],
  ['wallet source', ['sourceWalletId']],
  ['transfer.completed', ['transfer.completed']],
  ['command/create', ['Create a transfer order']],
  ['leave', ['sourceWalletId']],
  ['nowhere', []],
  ['reverse nowhere', ['Reverse a transfer', 'Refund a customer']],
  ['', []],
  ['?!', []],
])('"%s" finds %j', (query, expected) => {
  expect(titles(query)).toEqual(expected)
})
