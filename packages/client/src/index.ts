export type { Answer } from './answer.ts'
export { createWalletClient, type WalletClient } from './client.ts'
export {
  AbortedError,
  ApiError,
  ConnectionError,
  HistoryReplacedError,
  type Outcome,
  RequestError,
  TimeoutError,
  UnexpectedResponseError,
} from './errors.ts'
export type { Events, FollowOptions, Position } from './events.ts'
export type { HoldListQuery, Holds } from './holds.ts'
export type { Page } from './pages.ts'
export type { OneOrMore, Query, Sort } from './queries.ts'
export type * from './records.ts'
export type { CallOptions, Request, RequestOptions } from './request.ts'
export type { WalletClientOptions } from './settings.ts'
export {
  bodyHash,
  type Credentials,
  canonicalMessage,
  type RequestToSign,
  type SignedHeaders,
  type SignedParts,
  sign,
  signedHeaders,
} from './signing.ts'
export type { TransferListQuery, Transfers } from './transfers.ts'
export { type ReceiptClaims, ReceiptError, type ReceiptKeys, verifyReceipt } from './verify-receipt.ts'
export {
  verifyWebhook,
  type WebhookFault,
  type WebhookToVerify,
  WebhookVerificationError,
} from './verify-webhook.ts'
export type { Time, Wallets } from './wallets.ts'
export type { WebhookChanges, Webhooks } from './webhooks.ts'
