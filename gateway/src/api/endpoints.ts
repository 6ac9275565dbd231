import {
  changeWalletStatusBody,
  createBatchBody,
  createHoldBody,
  createTransferBody,
  createWalletBody,
  createWebhookBody,
  currencyDecimals,
  defaultEvents,
  deleteWebhookBody,
  eventTypes,
  flowDirections,
  flowSortFields,
  holdRecord,
  holdSortFields,
  holdStatuses,
  maxEvents,
  maxStatementDays,
  type Page,
  releaseHoldBody,
  reverseTransferBody,
  rotateWebhookBody,
  scopeOf,
  seekWebhookBody,
  settledAfterMs,
  transferSortFields,
  transferStatuses,
  transferTypes,
  updateWebhookBody,
  walletSortFields,
  walletStatuses,
  webhookSortFields,
  webhookStatuses,
} from '@workspace-wallet/contract'
import { z } from 'zod'
import { createBatch, createHold, createTransfer, releaseHold, reverseTransfer, sendOnce } from '../core/commands.ts'
import { descriptions } from './descriptions.ts'
import { type Endpoint, getEndpoint, listEndpoint, postEndpoint, queryEndpoint } from './endpoint.ts'
import { examples } from './examples.ts'
import {
  enumParameter,
  exactParameter,
  listQuery,
  pathTimeParameter,
  positionParameter,
  prefixParameter,
  sizeParameter,
  timeParameter,
} from './list-query.ts'
import {
  balanceAnswer,
  balanceAtAnswer,
  balanceAtRecord,
  balanceRecord,
  batchAnswer,
  batchRecord,
  completionAnswer,
  completionRecord,
  deletedWebhookAnswer,
  eventPageAnswer,
  eventPageText,
  flowPageAnswer,
  flowRecord,
  holdAnswer,
  holdPageAnswer,
  issuedWebhookAnswer,
  issuedWebhookRecord,
  orderAnswer,
  orderPageAnswer,
  orderRecord,
  receiptAnswer,
  rotatedWebhookAnswer,
  rotatedWebhookRecord,
  statementAnswer,
  statementRecord,
  walletAnswer,
  walletPageAnswer,
  walletRecord,
  webhookAnswer,
  webhookPageAnswer,
  webhookRecord,
} from './records.ts'

const currency = z.enum([...currencyDecimals.keys()], 'UNKNOWN_CURRENCY').describe('Currency code, upper case.')
const created = {
  createdFrom: timeParameter.describe('ISO 8601 time with a zone, inclusive. A bare date is midnight UTC.'),
  createdTo: timeParameter.describe('ISO 8601 time with a zone, exclusive. A bare date is midnight UTC.'),
}

const noParams = z.object({})
/** Any string: malformed and unknown IDs get the same error, W001. */
const walletParams = z.object({
  walletId: pathParameter('ID of a wallet of the workspace. Anything else fails with `W001`.'),
})
const settled = `At least ${settledAfterMs / 1000} seconds ago. A later time fails with \`S012\`, and \`detail\` names the latest time that is allowed.`
const balanceAtParams = walletParams.extend({
  at: pathTimeParameter.describe(`ISO 8601 time with a zone. A bare date is midnight UTC. ${settled}`),
})
const statementParams = walletParams.extend({
  from: pathTimeParameter.describe(
    `ISO 8601 time with a zone, inclusive. A bare date is midnight UTC. Not after \`to\`, and at most ${maxStatementDays} days before it.`,
  ),
  to: pathTimeParameter.describe(`ISO 8601 time with a zone, exclusive. A bare date is midnight UTC. ${settled}`),
})
/** Any string: malformed and unknown identifiers get the same error, T001. */
const orderParams = z.object({
  bizId: pathParameter("An order's bizId or transferId, percent-encoded. Anything else fails with `T001`."),
})
/** Any string: malformed and unknown identifiers get the same error, H001. */
const holdParams = z.object({
  bizId: pathParameter("A hold's bizId or holdId, percent-encoded. Anything else fails with `H001`."),
})

/** Any string: malformed and unknown IDs get the same error, E002. */
const webhookParams = z.object({
  webhookId: pathParameter('ID of a webhook of the workspace. Anything else fails with `E002`.'),
})

/** A path with a slash, encoded or not, names no endpoint: see requirePlainPath. The length is that of the longest bizId. */
function pathParameter(description: string) {
  return z.string().meta({ minLength: 1, maxLength: 64, pattern: '^[^/\\\\]+$', description })
}

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

/** In the order in which they are checked. */
const createErrors = ['T005', 'T004', 'W001', 'H001', 'H004', 'W002', 'H002', 'T003', 'H003', 'T008', 'T002'] as const
const reverseErrors = ['T005', 'T001', 'T006', 'W002', 'T003', 'T007', 'T008', 'T002'] as const

export const createTransferPath = '/api/v1/transfer/command/create'

/** The endpoints of section 4. Express matches them in this order. */
export const endpoints: readonly Endpoint[] = [
  listEndpoint({
    operationId: 'listWallets',
    title: 'List wallets',
    description: descriptions.listWallets,
    path: '/api/v1/wallets',
    scope: 'wallet:read',
    params: noParams,
    query: listQuery(walletSortFields, {
      status: enumParameter(walletStatuses),
      currency,
      ...created,
      walletIdPrefix: prefixParameter,
    }),
    errors: [],
    answer: walletPageAnswer,
    example: examples.listWallets,
    handle: async ({ core, on, list }) => mapPage(await core.wallets.list.query({ ...on, ...list }), walletRecord),
  }),
  getEndpoint({
    operationId: 'getWallet',
    title: 'Get a wallet',
    description: descriptions.getWallet,
    path: '/api/v1/wallets/:walletId',
    scope: 'wallet:read',
    params: walletParams,
    errors: ['W001'],
    answer: walletAnswer,
    example: examples.getWallet,
    handle: async ({ core, on, params }) => walletRecord(await core.wallets.get.query({ ...on, ...params })),
  }),
  getEndpoint({
    operationId: 'getWalletBalance',
    title: "Get a wallet's balance",
    description: descriptions.getWalletBalance,
    path: '/api/v1/wallets/:walletId/balance',
    scope: 'wallet:read',
    params: walletParams,
    errors: ['W001'],
    answer: balanceAnswer,
    example: examples.getBalance,
    handle: async ({ core, on, params }) => balanceRecord(await core.wallets.balance.query({ ...on, ...params })),
  }),
  getEndpoint({
    operationId: 'getWalletBalanceAt',
    title: "Get a wallet's balance at a time",
    description: descriptions.getWalletBalanceAt,
    path: '/api/v1/wallets/:walletId/balance/:at',
    scope: 'wallet:read',
    params: balanceAtParams,
    errors: ['W001'],
    answer: balanceAtAnswer,
    example: examples.getBalanceAt,
    handle: async ({ core, on, params }) => balanceAtRecord(await core.wallets.balanceAt.query({ ...on, ...params })),
  }),
  getEndpoint({
    operationId: 'getWalletStatement',
    title: "Get a wallet's statement",
    description: descriptions.getWalletStatement,
    path: '/api/v1/wallets/:walletId/statement/:from/:to',
    scope: 'wallet:read',
    params: statementParams,
    errors: ['W001'],
    answer: statementAnswer,
    example: examples.getStatement,
    handle: async ({ core, on, params }) => statementRecord(await core.wallets.statement.query({ ...on, ...params })),
  }),
  listEndpoint({
    operationId: 'listWalletFlows',
    title: "List a wallet's flows",
    description: descriptions.listWalletFlows,
    path: '/api/v1/wallets/:walletId/flows',
    scope: 'wallet:read',
    params: walletParams,
    query: listQuery(flowSortFields, {
      direction: enumParameter(flowDirections),
      type: enumParameter(transferTypes),
      ...created,
      transferIdPrefix: prefixParameter,
    }),
    errors: ['W001'],
    answer: flowPageAnswer,
    example: examples.listFlows,
    handle: async ({ core, on, params, list }) =>
      mapPage(await core.wallets.flows.query({ ...on, ...params, ...list }), flowRecord),
  }),
  listEndpoint({
    operationId: 'listTransfers',
    title: 'List transfer orders',
    description: descriptions.listTransfers,
    path: '/api/v1/transfer/query/orders',
    scope: 'transfer:read',
    params: noParams,
    query: orderQuery,
    errors: [],
    answer: orderPageAnswer,
    example: examples.listOrders,
    handle: async ({ core, on, list }) => mapPage(await core.transfers.list.query({ ...on, ...list }), orderRecord),
  }),
  listEndpoint({
    operationId: 'listWalletTransfers',
    title: "List a wallet's transfer orders",
    description: descriptions.listWalletTransfers,
    path: '/api/v1/transfer/query/orders/wallet/:walletId',
    scope: 'transfer:read',
    params: walletParams,
    query: orderQuery,
    errors: ['W001'],
    answer: orderPageAnswer,
    example: examples.listWalletOrders,
    handle: async ({ core, on, params, list }) =>
      mapPage(await core.transfers.list.query({ ...on, ...params, ...list }), orderRecord),
  }),
  getEndpoint({
    operationId: 'getTransfer',
    title: 'Get a transfer order',
    description: descriptions.getTransfer,
    path: '/api/v1/transfer/query/orders/:bizId',
    scope: 'transfer:read',
    params: orderParams,
    errors: ['T001'],
    answer: orderAnswer,
    example: examples.getOrder,
    handle: async ({ core, on, params }) => orderRecord(await core.transfers.get.query({ ...on, ...params })),
  }),
  getEndpoint({
    operationId: 'getTransferCompletion',
    title: 'Check whether a transfer is completed',
    description: descriptions.getTransferCompletion,
    path: '/api/v1/transfer/query/orders/:bizId/completed',
    scope: 'transfer:read',
    params: orderParams,
    errors: ['T001'],
    answer: completionAnswer,
    example: examples.getCompletion,
    handle: async ({ core, on, params }) => completionRecord(await core.transfers.get.query({ ...on, ...params })),
  }),
  getEndpoint({
    operationId: 'getTransferReceipt',
    title: 'Get a signed receipt of a transfer',
    description: descriptions.getTransferReceipt,
    path: '/api/v1/transfer/query/orders/:bizId/receipt',
    scope: 'transfer:read',
    params: orderParams,
    errors: ['T001'],
    answer: receiptAnswer,
    example: examples.getReceipt,
    handle: async ({ core, on, params }) => core.receipts.get.query({ ...on, ...params }),
  }),
  postEndpoint({
    operationId: 'createTransfer',
    title: 'Create a transfer order',
    description: descriptions.createTransfer,
    path: createTransferPath,
    scope: 'transfer:create',
    params: noParams,
    body: createTransferBody,
    errors: [...createErrors],
    answer: orderAnswer,
    example: examples.createOrder,
    handle: async ({ core, on, requireScope, body }) => {
      requireScope(scopeOf(body))
      return orderRecord(await createTransfer(core, { ...on, order: body }))
    },
  }),
  postEndpoint({
    operationId: 'createTransferBatch',
    title: 'Create a batch of transfers',
    description: descriptions.createTransferBatch,
    path: '/api/v1/transfer/command/batch',
    scope: 'transfer:create',
    params: noParams,
    body: createBatchBody,
    bodyLimitBytes: 256 * 1024,
    errors: [...new Set([...createErrors, ...reverseErrors])],
    answer: batchAnswer,
    example: examples.createBatch,
    handle: async ({ core, on, requireScope, body }) => {
      for (const [index, item] of body.transfers.entries()) requireScope(scopeOf(item), index)
      return batchRecord(await createBatch(core, { ...on, batch: body }))
    },
  }),
  postEndpoint({
    operationId: 'reverseTransfer',
    title: 'Reverse a transfer',
    description: descriptions.reverseTransfer,
    path: '/api/v1/transfer/command/reverse',
    scope: 'transfer:reverse',
    params: noParams,
    body: reverseTransferBody,
    errors: [...reverseErrors],
    answer: orderAnswer,
    example: examples.reverseOrder,
    handle: async ({ core, on, body }) => orderRecord(await reverseTransfer(core, { ...on, reversal: body })),
  }),
  listEndpoint({
    operationId: 'listHolds',
    title: 'List holds',
    description: descriptions.listHolds,
    path: '/api/v1/hold/query/holds',
    scope: 'hold:read',
    params: noParams,
    query: holdQuery,
    errors: [],
    answer: holdPageAnswer,
    example: examples.listHolds,
    handle: async ({ core, on, list }) => mapPage(await core.holds.list.query({ ...on, ...list }), holdRecord),
  }),
  listEndpoint({
    operationId: 'listWalletHolds',
    title: "List a wallet's holds",
    description: descriptions.listWalletHolds,
    path: '/api/v1/hold/query/holds/wallet/:walletId',
    scope: 'hold:read',
    params: walletParams,
    query: holdQuery,
    errors: ['W001'],
    answer: holdPageAnswer,
    example: examples.listWalletHolds,
    handle: async ({ core, on, params, list }) =>
      mapPage(await core.holds.list.query({ ...on, ...params, ...list }), holdRecord),
  }),
  getEndpoint({
    operationId: 'getHold',
    title: 'Get a hold',
    description: descriptions.getHold,
    path: '/api/v1/hold/query/holds/:bizId',
    scope: 'hold:read',
    params: holdParams,
    errors: ['H001'],
    answer: holdAnswer,
    example: examples.getHold,
    handle: async ({ core, on, params }) => holdRecord(await core.holds.get.query({ ...on, ...params })),
  }),
  postEndpoint({
    operationId: 'createHold',
    title: 'Create a hold',
    description: descriptions.createHold,
    path: '/api/v1/hold/command/create',
    scope: 'hold:create',
    params: noParams,
    body: createHoldBody,
    errors: ['T005', 'W001', 'W002', 'T003', 'T008', 'T002'],
    answer: holdAnswer,
    example: examples.createHold,
    handle: async ({ core, on, body }) => holdRecord(await createHold(core, { ...on, hold: body })),
  }),
  postEndpoint({
    operationId: 'releaseHold',
    title: 'Release a hold',
    description: descriptions.releaseHold,
    path: '/api/v1/hold/command/release',
    scope: 'hold:create',
    params: noParams,
    body: releaseHoldBody,
    errors: ['H001', 'H002'],
    answer: holdAnswer,
    example: examples.releaseHold,
    handle: async ({ core, on, body }) => holdRecord(await releaseHold(core, { ...on, ...body })),
  }),
  queryEndpoint({
    operationId: 'readEvents',
    title: 'Read events',
    description: descriptions.readEvents,
    path: '/api/v1/event/query/events/:after',
    scope: 'event:read',
    params: z.object({
      after: positionParameter.describe(
        'A position, to read the events after it; or `head`, to get the end of the log without events.',
      ),
    }),
    query: eventQuery,
    errors: ['E001'],
    answer: eventPageAnswer,
    example: examples.readEvents,
    handle: async ({ core, on, params, query: { size, type: types } }) =>
      eventPageText(await core.events.read.query({ ...on, ...params, size, types })),
  }),
  postEndpoint({
    operationId: 'createWallet',
    title: 'Create a wallet',
    description: descriptions.createWallet,
    path: '/api/v1/wallet/command/create',
    scope: 'wallet:manage',
    params: noParams,
    body: createWalletBody,
    errors: ['T005'],
    answer: walletAnswer,
    example: examples.createWallet,
    handle: async ({ core, on, body }) =>
      walletRecord(await sendOnce(() => core.wallets.create.mutate({ ...on, ...body }))),
  }),
  postEndpoint({
    operationId: 'changeWalletStatus',
    title: "Change a wallet's status",
    description: descriptions.changeWalletStatus,
    path: '/api/v1/wallet/command/change-status',
    scope: 'wallet:manage',
    params: noParams,
    body: changeWalletStatusBody,
    errors: ['W001', 'W002', 'W004', 'W003'],
    answer: walletAnswer,
    example: examples.changeWalletStatus,
    handle: async ({ core, on, body }) =>
      walletRecord(await sendOnce(() => core.wallets.changeStatus.mutate({ ...on, ...body }))),
  }),
  listEndpoint({
    operationId: 'listWebhooks',
    title: 'List webhooks',
    description: descriptions.listWebhooks,
    path: '/api/v1/webhook/query/webhooks',
    scope: 'webhook:manage',
    params: noParams,
    query: listQuery(webhookSortFields, { status: enumParameter(webhookStatuses) }),
    errors: [],
    answer: webhookPageAnswer,
    example: examples.listWebhooks,
    handle: async ({ core, on, list }) => mapPage(await core.webhooks.list.query({ ...on, ...list }), webhookRecord),
  }),
  getEndpoint({
    operationId: 'getWebhook',
    title: 'Get a webhook',
    description: descriptions.getWebhook,
    path: '/api/v1/webhook/query/webhooks/:webhookId',
    scope: 'webhook:manage',
    params: webhookParams,
    errors: ['E002'],
    answer: webhookAnswer,
    example: examples.getWebhook,
    handle: async ({ core, on, params }) => webhookRecord(await core.webhooks.get.query({ ...on, ...params })),
  }),
  postEndpoint({
    operationId: 'createWebhook',
    title: 'Create a webhook',
    description: descriptions.createWebhook,
    path: '/api/v1/webhook/command/create',
    scope: 'webhook:manage',
    params: noParams,
    body: createWebhookBody,
    errors: ['T005', 'E003'],
    answer: issuedWebhookAnswer,
    example: examples.createWebhook,
    handle: async ({ core, on, body }) =>
      issuedWebhookRecord(await sendOnce(() => core.webhooks.create.mutate({ ...on, ...body }))),
  }),
  postEndpoint({
    operationId: 'updateWebhook',
    title: 'Update a webhook',
    description: descriptions.updateWebhook,
    path: '/api/v1/webhook/command/update',
    scope: 'webhook:manage',
    params: noParams,
    body: updateWebhookBody,
    errors: ['E002'],
    answer: webhookAnswer,
    example: examples.updateWebhook,
    handle: async ({ core, on, body }) =>
      webhookRecord(await sendOnce(() => core.webhooks.update.mutate({ ...on, ...body }))),
  }),
  postEndpoint({
    operationId: 'rotateWebhookSecret',
    title: "Rotate a webhook's secret",
    description: descriptions.rotateWebhookSecret,
    path: '/api/v1/webhook/command/rotate',
    scope: 'webhook:manage',
    params: noParams,
    body: rotateWebhookBody,
    errors: ['E002'],
    answer: rotatedWebhookAnswer,
    example: examples.rotateWebhookSecret,
    handle: async ({ core, on, body }) =>
      rotatedWebhookRecord(await sendOnce(() => core.webhooks.rotate.mutate({ ...on, ...body }))),
  }),
  postEndpoint({
    operationId: 'seekWebhook',
    title: 'Move a webhook to another event',
    description: descriptions.seekWebhook,
    path: '/api/v1/webhook/command/seek',
    scope: 'webhook:manage',
    params: noParams,
    body: seekWebhookBody,
    errors: ['E002', 'E001'],
    answer: webhookAnswer,
    example: examples.seekWebhook,
    handle: async ({ core, on, body }) =>
      webhookRecord(await sendOnce(() => core.webhooks.seek.mutate({ ...on, ...body }))),
  }),
  postEndpoint({
    operationId: 'deleteWebhook',
    title: 'Delete a webhook',
    description: descriptions.deleteWebhook,
    path: '/api/v1/webhook/command/delete',
    scope: 'webhook:manage',
    params: noParams,
    body: deleteWebhookBody,
    errors: ['E002'],
    answer: deletedWebhookAnswer,
    example: examples.deleteWebhook,
    handle: ({ core, on, body }) => sendOnce(() => core.webhooks.delete.mutate({ ...on, ...body })),
  }),
]

function mapPage<Item, Mapped>({ content, page }: Page<Item>, toRecord: (item: Item) => Mapped): Page<Mapped> {
  return { content: content.map(toRecord), page }
}

const bodyLimits = new Map(endpoints.map(({ path, bodyLimitBytes }) => [path, bodyLimitBytes]))

/** The body limit of the endpoint at a path, in bytes, if it raises that of the operator. */
export function bodyLimitOf(path: string): number | undefined {
  return bodyLimits.get(path)
}

/** Whether this is the path of an endpoint without path parameters. */
export function isEndpointPath(path: string): boolean {
  return bodyLimits.has(path) && !path.includes(':')
}
