import {
  createTransferBody,
  currencyDecimals,
  DomainError,
  flowDirections,
  flowSortFields,
  type Page,
  pageOf,
  transferSortFields,
  transferStatuses,
  transferTypes,
  walletSortFields,
  walletStatuses,
} from '@workspace-wallet/contract'
import { z } from 'zod'
import { ask, createTransfer } from '../core/client.ts'
import { command, type Endpoint, list, read } from './endpoint.ts'
import { examples } from './examples.ts'
import { listQuery, oneOf, prefix, time } from './list.ts'
import {
  balanceAnswer,
  balanceRecord,
  completionAnswer,
  completionRecord,
  flowAnswer,
  flowRecord,
  orderAnswer,
  walletAnswer,
  walletRecord,
} from './records.ts'

const currency = oneOf([...currencyDecimals.keys()]).describe('Currency code, upper case.')
const created = {
  createdFrom: time.describe('ISO 8601 time with a zone, inclusive. A bare date is midnight UTC.'),
  createdTo: time.describe('ISO 8601 time with a zone, exclusive. A bare date is midnight UTC.'),
}

const noParams = z.object({})
/** Any text: a malformed id is answered W001, exactly as an unknown one. */
const walletParams = z.object({
  walletId: z.string().describe('ID of a wallet of the workspace. Any other text is `W001`.'),
})
/** Any text: a malformed one is answered T001, exactly as an unknown one. */
const orderParams = z.object({
  bizId: z.string().describe("An order's bizId or transferId, percent-encoded. Any other text is `T001`."),
})

const orderQuery = listQuery(transferSortFields, {
  status: oneOf(transferStatuses),
  currency,
  ...created,
  transferIdPrefix: prefix,
  bizIdPrefix: prefix,
})

/** The endpoints of section 4. Express tries them in this order. */
export const endpoints: readonly Endpoint[] = [
  list({
    title: 'List wallets',
    path: '/api/v1/wallets',
    scope: 'wallet:read',
    params: noParams,
    query: listQuery(walletSortFields, {
      status: oneOf(walletStatuses),
      currency,
      ...created,
      walletIdPrefix: prefix,
    }),
    answer: pageOf(walletAnswer),
    example: examples.listWallets,
    handle: async ({ core, on, list }) => mapPage(await ask(core.wallets.list.query({ ...on, ...list })), walletRecord),
  }),
  read({
    title: 'Get a wallet',
    path: '/api/v1/wallets/:walletId',
    scope: 'wallet:read',
    params: walletParams,
    answer: walletAnswer,
    example: examples.getWallet,
    handle: async ({ core, on, params }) => walletRecord(await ask(core.wallets.get.query({ ...on, ...params }))),
  }),
  read({
    title: "Get a wallet's balance",
    path: '/api/v1/wallets/:walletId/balance',
    scope: 'wallet:read',
    params: walletParams,
    answer: balanceAnswer,
    example: examples.getBalance,
    handle: async ({ core, on, params }) => balanceRecord(await ask(core.wallets.balance.query({ ...on, ...params }))),
  }),
  list({
    title: "List a wallet's flows",
    path: '/api/v1/wallets/:walletId/flows',
    scope: 'wallet:read',
    params: walletParams,
    query: listQuery(flowSortFields, {
      direction: oneOf(flowDirections),
      type: oneOf(transferTypes),
      ...created,
      transferIdPrefix: prefix,
    }),
    answer: pageOf(flowAnswer),
    example: examples.listFlows,
    handle: async ({ core, on, params, list }) =>
      mapPage(await ask(core.wallets.flows.query({ ...on, ...params, ...list })), flowRecord),
  }),
  list({
    title: 'List transfer orders',
    path: '/api/v1/transfer/query/orders',
    scope: 'transfer:read',
    params: noParams,
    query: orderQuery,
    answer: pageOf(orderAnswer),
    example: examples.listOrders,
    handle: ({ core, on, list }) => ask(core.transfers.list.query({ ...on, ...list })),
  }),
  list({
    title: "List a wallet's transfer orders",
    path: '/api/v1/transfer/query/orders/wallet/:walletId',
    scope: 'transfer:read',
    params: walletParams,
    query: orderQuery,
    answer: pageOf(orderAnswer),
    example: examples.listWalletOrders,
    handle: ({ core, on, params, list }) => ask(core.transfers.list.query({ ...on, ...params, ...list })),
  }),
  read({
    title: 'Get a transfer order',
    path: '/api/v1/transfer/query/orders/:bizId',
    scope: 'transfer:read',
    params: orderParams,
    answer: orderAnswer,
    example: examples.getOrder,
    handle: ({ core, on, params }) => ask(core.transfers.get.query({ ...on, ...params })),
  }),
  read({
    title: 'Check whether a transfer is completed',
    path: '/api/v1/transfer/query/orders/:bizId/completed',
    scope: 'transfer:read',
    params: orderParams,
    answer: completionAnswer,
    example: examples.getCompletion,
    handle: async ({ core, on, params }) => completionRecord(await ask(core.transfers.get.query({ ...on, ...params }))),
  }),
  command({
    title: 'Create a transfer order',
    path: '/api/v1/transfer/command/create',
    scope: 'transfer:create',
    params: noParams,
    body: createTransferBody,
    answer: orderAnswer,
    example: examples.createOrder,
    handle: ({ core, on, body }) => createTransfer(core, { ...on, order: body }),
  }),
]

function mapPage<Item, Shown>({ content, page }: Page<Item>, show: (item: Item) => Shown): Page<Shown> {
  return { content: content.map(show), page }
}

/** Deny by default: a path that no endpoint declares. */
export function noSuchEndpoint(method: string, path: string): DomainError {
  return new DomainError('50090201', { method, path: path.length > 200 ? `${path.slice(0, 200)}…` : path })
}
