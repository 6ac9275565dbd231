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
import { createTransferWithRetry } from '../core/create-transfer.ts'
import { type Endpoint, getEndpoint, listEndpoint, postEndpoint } from './endpoint.ts'
import { examples } from './examples.ts'
import { enumParameter, listQuery, prefixParameter, timeParameter } from './list-query.ts'
import {
  balanceAnswer,
  balanceRecord,
  completionAnswer,
  completionRecord,
  flowAnswer,
  flowRecord,
  orderAnswer,
  orderRecord,
  walletAnswer,
  walletRecord,
} from './records.ts'

const currency = enumParameter([...currencyDecimals.keys()]).describe('Currency code, upper case.')
const created = {
  createdFrom: timeParameter.describe('ISO 8601 time with a zone, inclusive. A bare date is midnight UTC.'),
  createdTo: timeParameter.describe('ISO 8601 time with a zone, exclusive. A bare date is midnight UTC.'),
}

const noParams = z.object({})
/** Any string: malformed and unknown IDs get the same error, W001. */
const walletParams = z.object({
  walletId: z.string().describe('ID of a wallet of the workspace. Any other text is `W001`.'),
})
/** Any string: malformed and unknown identifiers get the same error, T001. */
const orderParams = z.object({
  bizId: z.string().describe("An order's bizId or transferId, percent-encoded. Any other text is `T001`."),
})

const orderQuery = listQuery(transferSortFields, {
  status: enumParameter(transferStatuses),
  currency,
  ...created,
  transferIdPrefix: prefixParameter,
  bizIdPrefix: prefixParameter,
})

/** The endpoints of section 4. Express matches them in this order. */
export const endpoints: readonly Endpoint[] = [
  listEndpoint({
    title: 'List wallets',
    path: '/api/v1/wallets',
    scope: 'wallet:read',
    params: noParams,
    query: listQuery(walletSortFields, {
      status: enumParameter(walletStatuses),
      currency,
      ...created,
      walletIdPrefix: prefixParameter,
    }),
    answer: pageOf(walletAnswer),
    example: examples.listWallets,
    handle: async ({ core, on, list }) => mapPage(await core.wallets.list.query({ ...on, ...list }), walletRecord),
  }),
  getEndpoint({
    title: 'Get a wallet',
    path: '/api/v1/wallets/:walletId',
    scope: 'wallet:read',
    params: walletParams,
    answer: walletAnswer,
    example: examples.getWallet,
    handle: async ({ core, on, params }) => walletRecord(await core.wallets.get.query({ ...on, ...params })),
  }),
  getEndpoint({
    title: "Get a wallet's balance",
    path: '/api/v1/wallets/:walletId/balance',
    scope: 'wallet:read',
    params: walletParams,
    answer: balanceAnswer,
    example: examples.getBalance,
    handle: async ({ core, on, params }) => balanceRecord(await core.wallets.balance.query({ ...on, ...params })),
  }),
  listEndpoint({
    title: "List a wallet's flows",
    path: '/api/v1/wallets/:walletId/flows',
    scope: 'wallet:read',
    params: walletParams,
    query: listQuery(flowSortFields, {
      direction: enumParameter(flowDirections),
      type: enumParameter(transferTypes),
      ...created,
      transferIdPrefix: prefixParameter,
    }),
    answer: pageOf(flowAnswer),
    example: examples.listFlows,
    handle: async ({ core, on, params, list }) =>
      mapPage(await core.wallets.flows.query({ ...on, ...params, ...list }), flowRecord),
  }),
  listEndpoint({
    title: 'List transfer orders',
    path: '/api/v1/transfer/query/orders',
    scope: 'transfer:read',
    params: noParams,
    query: orderQuery,
    answer: pageOf(orderAnswer),
    example: examples.listOrders,
    handle: async ({ core, on, list }) => mapPage(await core.transfers.list.query({ ...on, ...list }), orderRecord),
  }),
  listEndpoint({
    title: "List a wallet's transfer orders",
    path: '/api/v1/transfer/query/orders/wallet/:walletId',
    scope: 'transfer:read',
    params: walletParams,
    query: orderQuery,
    answer: pageOf(orderAnswer),
    example: examples.listWalletOrders,
    handle: async ({ core, on, params, list }) =>
      mapPage(await core.transfers.list.query({ ...on, ...params, ...list }), orderRecord),
  }),
  getEndpoint({
    title: 'Get a transfer order',
    path: '/api/v1/transfer/query/orders/:bizId',
    scope: 'transfer:read',
    params: orderParams,
    answer: orderAnswer,
    example: examples.getOrder,
    handle: async ({ core, on, params }) => orderRecord(await core.transfers.get.query({ ...on, ...params })),
  }),
  getEndpoint({
    title: 'Check whether a transfer is completed',
    path: '/api/v1/transfer/query/orders/:bizId/completed',
    scope: 'transfer:read',
    params: orderParams,
    answer: completionAnswer,
    example: examples.getCompletion,
    handle: async ({ core, on, params }) => completionRecord(await core.transfers.get.query({ ...on, ...params })),
  }),
  postEndpoint({
    title: 'Create a transfer order',
    path: '/api/v1/transfer/command/create',
    scope: 'transfer:create',
    params: noParams,
    body: createTransferBody,
    answer: orderAnswer,
    example: examples.createOrder,
    handle: async ({ core, on, body }) => orderRecord(await createTransferWithRetry(core, { ...on, order: body })),
  }),
]

function mapPage<Item, Record>({ content, page }: Page<Item>, toRecord: (item: Item) => Record): Page<Record> {
  return { content: content.map(toRecord), page }
}

/** 50090201, for a method and path that no endpoint declares (section 5.4). */
export function noSuchEndpoint(method: string, path: string): DomainError {
  return new DomainError('50090201', { method, path: path.length > 200 ? `${path.slice(0, 200)}…` : path })
}
