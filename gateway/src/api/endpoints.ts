import type { IncomingMessage } from 'node:http'
import {
  currencyDecimals,
  DomainError,
  type FlowFilter,
  flowDirections,
  flowSortFields,
  type Page,
  type Scope,
  type TransferFilter,
  transferSortFields,
  transferStatuses,
  transferTypes,
  type WalletFilter,
  walletSortFields,
  walletStatuses,
} from '@workspace-wallet/contract'
import { ask, type CoreClient, createTransfer } from '../core/client.ts'
import { parseCreateBody } from './body.ts'
import { oneOf, parseListQuery, prefix, time } from './list.ts'
import { balanceRecord, completionRecord, flowRecord, walletRecord } from './records.ts'

/** An authenticated call of an endpoint. `on` is the workspace of the key, and on whose behalf it is. */
export type Call = {
  core: CoreClient
  on: { workspaceId: string; caller: { apiKey: string; requestId: string; address: string } }
  params: Record<string, string>
  query: string
  request: IncomingMessage
  body: Buffer
}

/** An endpoint of section 4: reached only with the scope that it declares. */
export type Endpoint = {
  method: 'GET' | 'POST'
  path: string
  scope: Scope
  handle: (call: Call) => Promise<unknown>
}

export const endpoints: readonly Endpoint[] = [
  { method: 'GET', path: '/api/v1/wallets', scope: 'wallet:read', handle: listWallets },
  { method: 'GET', path: '/api/v1/wallets/:walletId', scope: 'wallet:read', handle: getWallet },
  { method: 'GET', path: '/api/v1/wallets/:walletId/balance', scope: 'wallet:read', handle: getBalance },
  { method: 'GET', path: '/api/v1/wallets/:walletId/flows', scope: 'wallet:read', handle: listFlows },
  { method: 'GET', path: '/api/v1/transfer/query/orders', scope: 'transfer:read', handle: listOrders },
  {
    method: 'GET',
    path: '/api/v1/transfer/query/orders/wallet/:walletId',
    scope: 'transfer:read',
    handle: listOrders,
  },
  { method: 'GET', path: '/api/v1/transfer/query/orders/:bizId', scope: 'transfer:read', handle: getOrder },
  {
    method: 'GET',
    path: '/api/v1/transfer/query/orders/:bizId/completed',
    scope: 'transfer:read',
    handle: getCompletion,
  },
  { method: 'POST', path: '/api/v1/transfer/command/create', scope: 'transfer:create', handle: createOrder },
]

const currency = oneOf([...currencyDecimals.keys()])
const created = { createdFrom: time, createdTo: time }

async function listWallets({ core, on, query }: Call) {
  const list = parseListQuery<(typeof walletSortFields)[number], WalletFilter>(query, walletSortFields, {
    status: oneOf(walletStatuses),
    currency,
    ...created,
    walletIdPrefix: prefix,
  })
  return mapPage(await ask(core.wallets.list.query({ ...on, ...list })), walletRecord)
}

async function getWallet({ core, on, params }: Call) {
  return walletRecord(await ask(core.wallets.get.query({ ...on, walletId: params.walletId! })))
}

async function getBalance({ core, on, params }: Call) {
  return balanceRecord(await ask(core.wallets.balance.query({ ...on, walletId: params.walletId! })))
}

async function listFlows({ core, on, params, query }: Call) {
  const list = parseListQuery<(typeof flowSortFields)[number], FlowFilter>(query, flowSortFields, {
    direction: oneOf(flowDirections),
    type: oneOf(transferTypes),
    ...created,
    transferIdPrefix: prefix,
  })
  return mapPage(await ask(core.wallets.flows.query({ ...on, walletId: params.walletId!, ...list })), flowRecord)
}

/** Of the workspace, or of one wallet when the path names it. */
async function listOrders({ core, on, params, query }: Call) {
  const list = parseListQuery<(typeof transferSortFields)[number], TransferFilter>(query, transferSortFields, {
    status: oneOf(transferStatuses),
    currency,
    ...created,
    transferIdPrefix: prefix,
    bizIdPrefix: prefix,
  })
  const ofWallet = params.walletId === undefined ? {} : { walletId: params.walletId }
  return ask(core.transfers.list.query({ ...on, ...ofWallet, ...list }))
}

async function getOrder({ core, on, params }: Call) {
  return ask(core.transfers.get.query({ ...on, bizId: params.bizId! }))
}

async function getCompletion({ core, on, params }: Call) {
  return completionRecord(await ask(core.transfers.get.query({ ...on, bizId: params.bizId! })))
}

async function createOrder({ core, on, request, body }: Call) {
  return createTransfer(core, { ...on, order: parseCreateBody(request, body) })
}

function mapPage<Item, Shown>({ content, page }: Page<Item>, show: (item: Item) => Shown): Page<Shown> {
  return { content: content.map(show), page }
}

/** Deny by default: a path that no endpoint declares. */
export function noSuchEndpoint(method: string, path: string): DomainError {
  return new DomainError('50090201', { method, path: path.length > 200 ? `${path.slice(0, 200)}…` : path })
}
