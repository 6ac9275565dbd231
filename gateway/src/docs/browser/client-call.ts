import { javaScriptValue } from './literals.ts'

/** A request of one operation, in parts. */
export type SampleRequest = {
  operationId: string
  method: string
  /** The path with its query string, as it is sent. */
  target: string
  params: Record<string, string>
  query: readonly (readonly [name: string, value: string])[]
  /** The JSON value of the body; undefined if the operation has none. */
  body: unknown
}

type Arguments = { params: Record<string, string>; query: Record<string, unknown>; body: Record<string, unknown> }

/** The method of `@workspace-wallet/client` for each operation, and what it is called with. */
const methods: Record<string, [method: string, args: (request: Arguments) => unknown[]]> = {
  listWallets: ['wallets.list', ({ query }) => [query]],
  getWallet: ['wallets.get', ({ params }) => [params.walletId]],
  getWalletBalance: ['wallets.balance', ({ params }) => [params.walletId]],
  getWalletBalanceAt: ['wallets.balanceAt', ({ params }) => [params.walletId, params.at]],
  getWalletStatement: ['wallets.statement', ({ params }) => [params.walletId, params.from, params.to]],
  listWalletFlows: ['wallets.flows', ({ params, query }) => [params.walletId, query]],
  createWallet: ['wallets.create', ({ body }) => [body]],
  changeWalletStatus: ['wallets.changeStatus', ({ body }) => [body.walletId, body.status]],
  listTransfers: ['transfers.list', ({ query }) => [query]],
  listWalletTransfers: ['transfers.list', ({ params, query }) => [{ ...params, ...query }]],
  getTransfer: ['transfers.get', ({ params }) => [params.bizId]],
  getTransferCompletion: ['transfers.isCompleted', ({ params }) => [params.bizId]],
  getTransferReceipt: ['transfers.receipt', ({ params }) => [params.bizId]],
  createTransfer: ['transfers.create', ({ body }) => [body]],
  createTransferBatch: ['transfers.createBatch', ({ body }) => [body]],
  reverseTransfer: ['transfers.reverse', ({ body }) => [body]],
  listHolds: ['holds.list', ({ query }) => [query]],
  listWalletHolds: ['holds.list', ({ params, query }) => [{ ...params, ...query }]],
  getHold: ['holds.get', ({ params }) => [params.bizId]],
  createHold: ['holds.create', ({ body }) => [body]],
  releaseHold: ['holds.release', ({ body }) => [body.holdId]],
  readEvents: ['events.read', ({ params, query }) => [positionOf(params.after!), query]],
  listWebhooks: ['webhooks.list', ({ query }) => [query]],
  getWebhook: ['webhooks.get', ({ params }) => [params.webhookId]],
  createWebhook: ['webhooks.create', ({ body }) => [body]],
  updateWebhook: ['webhooks.update', ({ body: { webhookId, ...changes } }) => [webhookId, changes]],
  rotateWebhookSecret: ['webhooks.rotate', ({ body: { webhookId, ...options } }) => [webhookId, options]],
  seekWebhook: ['webhooks.seek', ({ body: { webhookId, after } }) => [webhookId, after]],
  deleteWebhook: ['webhooks.delete', ({ body }) => [body.webhookId]],
}

/** `client.wallets.get('wal_…')`. @throws Error for an operation without a method */
export function clientCall({ operationId, params, query, body }: SampleRequest): string {
  const found = methods[operationId]
  if (!found) throw new Error(`The client has no method for ${operationId}: add it to client-call.ts.`)
  const [method, argumentsOf] = found
  const args = argumentsOf({ params, query: queryOf(query), body: (body ?? {}) as Record<string, unknown> })
  const isEmpty = (value: unknown) => value === undefined || JSON.stringify(value) === '{}'
  const texts = args.filter(each => !isEmpty(each)).map(each => javaScriptValue(each))
  return `client.${method}(${texts.join(', ')})`
}

/** A parameter that is repeated is an array. Numbers are numbers. */
function queryOf(query: SampleRequest['query']): Record<string, unknown> {
  const groups = Map.groupBy(query, ([name]) => name)
  const entries = [...groups].map(([name, pairs]): [string, unknown] => {
    const values = pairs.map(([, value]) => (/^(page|size)$/.test(name) ? numberOf(value) : value))
    return [name, values.length === 1 ? values[0] : values]
  })
  return Object.fromEntries(entries)
}

const positionOf = (text: string) => (text === 'head' ? text : numberOf(text))
const numberOf = (text: string) => (/^\d{1,15}$/.test(text) ? Number(text) : text)
