import {
  changeWalletStatusBody,
  createBatchBody,
  createHoldBody,
  createTransferBody,
  createWalletBody,
  currencyDecimals,
  DomainError,
  defaultEvents,
  eventTypes,
  flowDirections,
  flowSortFields,
  holdSortFields,
  holdStatuses,
  isReversal,
  maxEvents,
  type Page,
  pageOf,
  releaseHoldBody,
  reverseTransferBody,
  transferSortFields,
  transferStatuses,
  transferTypes,
  walletSortFields,
  walletStatuses,
} from '@workspace-wallet/contract'
import { z } from 'zod'
import {
  changeWalletStatus,
  createBatch,
  createHold,
  createTransfer,
  createWallet,
  releaseHold,
  reverseTransfer,
} from '../core/commands.ts'
import { type Endpoint, getEndpoint, listEndpoint, postEndpoint, queryEndpoint } from './endpoint.ts'
import { examples } from './examples.ts'
import {
  enumParameter,
  exactParameter,
  listQuery,
  positionParameter,
  prefixParameter,
  sizeParameter,
  timeParameter,
} from './list-query.ts'
import {
  balanceAnswer,
  balanceRecord,
  batchAnswer,
  batchRecord,
  completionAnswer,
  completionRecord,
  eventPageAnswer,
  eventPageRecord,
  flowAnswer,
  flowRecord,
  holdAnswer,
  holdRecord,
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

/** Any string: malformed and unknown identifiers get the same error, H001. */
const holdParams = z.object({
  bizId: z.string().describe("A hold's bizId or holdId, percent-encoded. Any other text is `H001`."),
})

const orderQuery = listQuery(transferSortFields, {
  status: enumParameter(transferStatuses),
  currency,
  ...created,
  transferIdPrefix: prefixParameter,
  bizIdPrefix: prefixParameter,
  reference: exactParameter,
  holdId: exactParameter,
  batchId: exactParameter,
  reversesTransferId: exactParameter,
})

const holdQuery = listQuery(holdSortFields, {
  status: enumParameter(holdStatuses),
  currency,
  ...created,
  reference: exactParameter,
  bizIdPrefix: prefixParameter,
})

const eventQuery = {
  parameters: {
    size: sizeParameter(defaultEvents, maxEvents),
    type: enumParameter(eventTypes).describe('Only events of this type. Repeat it for several types.'),
  },
  repeatable: 'type',
} as const

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
    handle: async ({ core, on, body }) => orderRecord(await createTransfer(core, { ...on, order: body })),
  }),
  postEndpoint({
    title: 'Create a batch of transfers',
    path: '/api/v1/transfer/command/batch',
    scope: 'transfer:create',
    params: noParams,
    body: createBatchBody,
    bodyLimitBytes: 256 * 1024,
    answer: batchAnswer,
    example: examples.createBatch,
    handle: async ({ core, on, requireScope, body }) => {
      if (body.transfers.some(isReversal)) requireScope('transfer:reverse')
      return batchRecord(await createBatch(core, { ...on, batch: body }))
    },
  }),
  postEndpoint({
    title: 'Reverse a transfer',
    path: '/api/v1/transfer/command/reverse',
    scope: 'transfer:reverse',
    params: noParams,
    body: reverseTransferBody,
    answer: orderAnswer,
    example: examples.reverseOrder,
    handle: async ({ core, on, body }) => orderRecord(await reverseTransfer(core, { ...on, reversal: body })),
  }),
  listEndpoint({
    title: 'List holds',
    path: '/api/v1/hold/query/holds',
    scope: 'hold:read',
    params: noParams,
    query: holdQuery,
    answer: pageOf(holdAnswer),
    example: examples.listHolds,
    handle: async ({ core, on, list }) => mapPage(await core.holds.list.query({ ...on, ...list }), holdRecord),
  }),
  listEndpoint({
    title: "List a wallet's holds",
    path: '/api/v1/hold/query/holds/wallet/:walletId',
    scope: 'hold:read',
    params: walletParams,
    query: holdQuery,
    answer: pageOf(holdAnswer),
    example: examples.listWalletHolds,
    handle: async ({ core, on, params, list }) =>
      mapPage(await core.holds.list.query({ ...on, ...params, ...list }), holdRecord),
  }),
  getEndpoint({
    title: 'Get a hold',
    path: '/api/v1/hold/query/holds/:bizId',
    scope: 'hold:read',
    params: holdParams,
    answer: holdAnswer,
    example: examples.getHold,
    handle: async ({ core, on, params }) => holdRecord(await core.holds.get.query({ ...on, ...params })),
  }),
  postEndpoint({
    title: 'Create a hold',
    path: '/api/v1/hold/command/create',
    scope: 'hold:create',
    params: noParams,
    body: createHoldBody,
    answer: holdAnswer,
    example: examples.createHold,
    handle: async ({ core, on, body }) => holdRecord(await createHold(core, { ...on, hold: body })),
  }),
  postEndpoint({
    title: 'Release a hold',
    path: '/api/v1/hold/command/release',
    scope: 'hold:create',
    params: noParams,
    body: releaseHoldBody,
    answer: holdAnswer,
    example: examples.releaseHold,
    handle: async ({ core, on, body }) => holdRecord(await releaseHold(core, { ...on, ...body })),
  }),
  queryEndpoint({
    title: 'Read events',
    path: '/api/v1/event/query/events/:after',
    scope: 'event:read',
    params: z.object({
      after: positionParameter.describe('A position: events after it. Or `head`: the end of the log, without events.'),
    }),
    query: eventQuery,
    answer: eventPageAnswer,
    example: examples.readEvents,
    handle: async ({ core, on, params, query: { size, type: types } }) =>
      eventPageRecord(await core.events.read.query({ ...on, ...params, size, types })),
  }),
  postEndpoint({
    title: 'Create a wallet',
    path: '/api/v1/wallet/command/create',
    scope: 'wallet:manage',
    params: noParams,
    body: createWalletBody,
    answer: walletAnswer,
    example: examples.createWallet,
    handle: async ({ core, on, body }) => walletRecord(await createWallet(core, { ...on, ...body })),
  }),
  postEndpoint({
    title: "Change a wallet's status",
    path: '/api/v1/wallet/command/change-status',
    scope: 'wallet:manage',
    params: noParams,
    body: changeWalletStatusBody,
    answer: walletAnswer,
    example: examples.changeWalletStatus,
    handle: async ({ core, on, body }) => walletRecord(await changeWalletStatus(core, { ...on, ...body })),
  }),
]

function mapPage<Item, Record>({ content, page }: Page<Item>, toRecord: (item: Item) => Record): Page<Record> {
  return { content: content.map(toRecord), page }
}

const bodyLimits = new Map(endpoints.map(({ path, bodyLimitBytes }) => [path, bodyLimitBytes]))

/** The body limit of the endpoint at a path, in bytes, if it raises that of the operator. */
export function bodyLimitOf(path: string): number | undefined {
  return bodyLimits.get(path)
}

/** 50090201, for a method and path that no endpoint declares (section 5.4). */
export function noSuchEndpoint(method: string, path: string): DomainError {
  return new DomainError('50090201', { method, path: path.length > 200 ? `${path.slice(0, 200)}…` : path })
}
