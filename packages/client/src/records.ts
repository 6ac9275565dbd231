/**
 * The records of the API, the bodies and queries that it takes, and its error codes. Generated from gateway/openapi.json by
 * `npm run golden`.
 *
 * Amounts and balances are decimal strings, never numbers: a number cannot hold every amount exactly. Newer services may
 * send further fields, types of events and error codes: ignore what you do not know.
 */
import type { OneOrMore, Sort } from './queries.ts'

export type Wallet = {
  /** `wal_…` */
  walletId: string
  /** As it was sent. Null for wallets that operators made without one. */
  bizId: string | null
  name: string
  /** Currency code. */
  currency: string
  status: 'ACTIVE' | 'FROZEN' | 'CLOSED'
  /** Decimal, with the number of decimals of its currency. */
  balance: string
  /** ISO 8601, UTC, in milliseconds. */
  createdAt: string
  /** ISO 8601, UTC, in milliseconds. */
  updatedAt: string
}

export type Balance = {
  /** `wal_…` */
  walletId: string
  /** Currency code. */
  currency: string
  /** Decimal, with the number of decimals of its currency. */
  balance: string
  /** The part of the balance that open holds reserve. */
  held: string
  /** The rest of the balance, which can be spent. */
  available: string
  /** The sequence of the last flow. 0 if there is none. */
  sequence: number
  /** ISO 8601, UTC, in milliseconds. */
  updatedAt: string
}

export type BalanceAt = {
  /** `wal_…` */
  walletId: string
  /** Currency code. */
  currency: string
  /** The time that was sent: ISO 8601, UTC, in milliseconds. */
  at: string
  /** The balance after all flows before `at`, with the number of decimals of its currency. */
  balance: string
  /** The sequence of the last flow before `at`. 0 if there is none. */
  sequence: number
}

export type WalletStatement = {
  /** `wal_…` */
  walletId: string
  /** Currency code. */
  currency: string
  /** The time that was sent: ISO 8601, UTC, in milliseconds. Inclusive. */
  from: string
  /** The time that was sent: ISO 8601, UTC, in milliseconds. Exclusive. */
  to: string
  /** The balance before the first flow. */
  opening: string
  /** The balance after the last flow: `opening` plus `totalIn` minus `totalOut`. */
  closing: string
  /** The sum of the flows with the direction `IN`. */
  totalIn: string
  /** The sum of the flows with the direction `OUT`. */
  totalOut: string
  /** How many flows there are. */
  flowCount: number
  /** The sequence of the first flow. Null if there is none. */
  firstSequence: number | null
  /** The sequence of the last flow. Null if there is none. */
  lastSequence: number | null
}

export type Flow = {
  /** `flw_…` */
  flowId: string
  /** `wal_…` */
  walletId: string
  /** The number of the flow in its wallet: 1, 2, 3, without gaps. */
  sequence: number
  direction: 'IN' | 'OUT'
  type: 'TRANSFER' | 'DEPOSIT' | 'WITHDRAWAL'
  /** Decimal, as it was sent. */
  amount: string
  /** Decimal, with the number of decimals of its currency. */
  balanceAfter: string
  /** Currency code. */
  currency: string
  /** `trf_…` */
  transferId: string
  /** The other wallet of the transfer. Null for deposits and withdrawals. */
  counterpartyWalletId: string | null
  /** ISO 8601, UTC, in milliseconds. */
  createdAt: string
}

export type TransferOrder = {
  /** `trf_…` */
  transferId: string
  /** As it was sent. If none was sent, the transferId. */
  bizId: string
  status: 'COMPLETED'
  /** Decimal, as it was sent. */
  amount: string
  /** Currency code. */
  currency: string
  /** `wal_…` */
  sourceWalletId: string
  /** `wal_…` */
  targetWalletId: string
  /** As it was sent, or null. */
  remark: string | null
  /** As it was sent, or null. */
  reference: string | null
  /** `hld_…`, the hold that the transfer captured, or null. */
  holdId: string | null
  /** The transferId of the first transfer of its batch. Null outside batches. */
  batchId: string | null
  /** The transferId of the transfer that it reverses, or null. */
  reversesTransferId: string | null
  /** ISO 8601, UTC, in milliseconds. */
  createdAt: string
  /** ISO 8601, UTC, in milliseconds. */
  updatedAt: string
  /** ISO 8601, UTC, in milliseconds. */
  completedAt: string
  /** The sum of its reversals, with the number of decimals of its currency. */
  reversedAmount: string
}

export type TransferBatch = {
  /** The transfer orders, in the order of the items. */
  transfers: TransferOrder[]
}

export type TransferCompletion = {
  /** `trf_…` */
  transferId: string
  /** As it was sent. If none was sent, the transferId. */
  bizId: string
  status: 'COMPLETED'
  /** Whether the status is `COMPLETED`. */
  completed: boolean
}

export type TransferReceipt = {
  /** A compact JWS. Its payload is a JSON object; see section 2.12 of the specification. */
  receipt: string
}

export type Hold = {
  /** `hld_…` */
  holdId: string
  /** As it was sent. */
  bizId: string
  /** `wal_…` */
  walletId: string
  /** Currency code. */
  currency: string
  /** Decimal, as it was sent. */
  amount: string
  /** The sum of what transfers and withdrawals have captured. */
  capturedAmount: string
  /** What the hold still reserves: the rest of the amount while it is `OPEN`, otherwise 0. */
  remainingAmount: string
  status: 'OPEN' | 'CAPTURED' | 'RELEASED' | 'EXPIRED'
  /** ISO 8601, UTC, in milliseconds. From then on, the status is `EXPIRED` if it was `OPEN`. */
  expiresAt: string
  /** As it was sent, or null. */
  reference: string | null
  /** As it was sent, or null. */
  remark: string | null
  /** ISO 8601, UTC, in milliseconds. */
  createdAt: string
  /** ISO 8601, UTC, in milliseconds. */
  updatedAt: string
}

export type PageMetadata = {
  /** The page size in effect. */
  size: number
  /** The number of the page, zero-based. 0 if the list is empty. */
  number: number
  /** How many items all pages have together. */
  totalElements: number
  /** How many pages there are. 0 if the list is empty. */
  totalPages: number
}

export type Event =
  | TransferCompletedEvent
  | WalletDepositedEvent
  | WalletWithdrawnEvent
  | HoldCreatedEvent
  | HoldReleasedEvent
  | HoldExpiredEvent
  | WalletCreatedEvent
  | WalletFrozenEvent
  | WalletUnfrozenEvent
  | WalletClosedEvent

export type EventType = Event['type']

export type TransferCompletedEvent = {
  /** `evt_…`, stable, and never used for another event. */
  eventId: string
  /** The number of the event in its workspace, in order of commit: 1, 2, 3, without gaps. */
  position: number
  type: 'transfer.completed'
  /** ISO 8601, UTC, in milliseconds. Never earlier than the time of the event before. */
  timestamp: string
  /** `wsp_…` */
  workspaceId: string
  data: {
    /** The order, as Get a transfer order returns it, without `reversedAmount`. */
    transfer: CompletedTransfer
    /** `source` and `target`, each with `walletId`, `sequence` of the flow, and `balanceAfter`. */
    balances: {
      source: BalanceAfter
      target: BalanceAfter
    }
    /** What remains of the hold that was captured; 0 if the rest was released. Null without a hold. */
    holdRemaining: string | null
  }
}

export type WalletDepositedEvent = {
  /** `evt_…`, stable, and never used for another event. */
  eventId: string
  /** The number of the event in its workspace, in order of commit: 1, 2, 3, without gaps. */
  position: number
  type: 'wallet.deposited'
  /** ISO 8601, UTC, in milliseconds. Never earlier than the time of the event before. */
  timestamp: string
  /** `wsp_…` */
  workspaceId: string
  data: {
    /** `transferId`, `bizId`, `walletId`, `type` (`DEPOSIT` or `WITHDRAWAL`), `amount`, `currency`, `holdId` or null, `createdAt`. */
    funding: Funding
    /** `target`, with `walletId`, `sequence` of the flow, and `balanceAfter`. */
    balances: {
      target: BalanceAfter
    }
    /** What remains of the hold that was captured; 0 if the rest was released. Null without a hold. */
    holdRemaining: string | null
  }
}

export type WalletWithdrawnEvent = {
  /** `evt_…`, stable, and never used for another event. */
  eventId: string
  /** The number of the event in its workspace, in order of commit: 1, 2, 3, without gaps. */
  position: number
  type: 'wallet.withdrawn'
  /** ISO 8601, UTC, in milliseconds. Never earlier than the time of the event before. */
  timestamp: string
  /** `wsp_…` */
  workspaceId: string
  data: {
    /** `transferId`, `bizId`, `walletId`, `type` (`DEPOSIT` or `WITHDRAWAL`), `amount`, `currency`, `holdId` or null, `createdAt`. */
    funding: Funding
    /** `source`, with `walletId`, `sequence` of the flow, and `balanceAfter`. */
    balances: {
      source: BalanceAfter
    }
    /** What remains of the hold that was captured; 0 if the rest was released. Null without a hold. */
    holdRemaining: string | null
  }
}

export type HoldCreatedEvent = {
  /** `evt_…`, stable, and never used for another event. */
  eventId: string
  /** The number of the event in its workspace, in order of commit: 1, 2, 3, without gaps. */
  position: number
  type: 'hold.created'
  /** ISO 8601, UTC, in milliseconds. Never earlier than the time of the event before. */
  timestamp: string
  /** `wsp_…` */
  workspaceId: string
  data: {
    /** The hold at the time of the event, as Get a hold returns it. */
    hold: Hold
  }
}

export type HoldReleasedEvent = {
  /** `evt_…`, stable, and never used for another event. */
  eventId: string
  /** The number of the event in its workspace, in order of commit: 1, 2, 3, without gaps. */
  position: number
  type: 'hold.released'
  /** ISO 8601, UTC, in milliseconds. Never earlier than the time of the event before. */
  timestamp: string
  /** `wsp_…` */
  workspaceId: string
  data: {
    /** The hold at the time of the event, as Get a hold returns it. */
    hold: Hold
  }
}

export type HoldExpiredEvent = {
  /** `evt_…`, stable, and never used for another event. */
  eventId: string
  /** The number of the event in its workspace, in order of commit: 1, 2, 3, without gaps. */
  position: number
  type: 'hold.expired'
  /** ISO 8601, UTC, in milliseconds. Never earlier than the time of the event before. */
  timestamp: string
  /** `wsp_…` */
  workspaceId: string
  data: {
    /** The hold at the time of the event, as Get a hold returns it. */
    hold: Hold
  }
}

export type WalletCreatedEvent = {
  /** `evt_…`, stable, and never used for another event. */
  eventId: string
  /** The number of the event in its workspace, in order of commit: 1, 2, 3, without gaps. */
  position: number
  type: 'wallet.created'
  /** ISO 8601, UTC, in milliseconds. Never earlier than the time of the event before. */
  timestamp: string
  /** `wsp_…` */
  workspaceId: string
  data: WalletChange
}

export type WalletFrozenEvent = {
  /** `evt_…`, stable, and never used for another event. */
  eventId: string
  /** The number of the event in its workspace, in order of commit: 1, 2, 3, without gaps. */
  position: number
  type: 'wallet.frozen'
  /** ISO 8601, UTC, in milliseconds. Never earlier than the time of the event before. */
  timestamp: string
  /** `wsp_…` */
  workspaceId: string
  data: WalletChange
}

export type WalletUnfrozenEvent = {
  /** `evt_…`, stable, and never used for another event. */
  eventId: string
  /** The number of the event in its workspace, in order of commit: 1, 2, 3, without gaps. */
  position: number
  type: 'wallet.unfrozen'
  /** ISO 8601, UTC, in milliseconds. Never earlier than the time of the event before. */
  timestamp: string
  /** `wsp_…` */
  workspaceId: string
  data: WalletChange
}

export type WalletClosedEvent = {
  /** `evt_…`, stable, and never used for another event. */
  eventId: string
  /** The number of the event in its workspace, in order of commit: 1, 2, 3, without gaps. */
  position: number
  type: 'wallet.closed'
  /** ISO 8601, UTC, in milliseconds. Never earlier than the time of the event before. */
  timestamp: string
  /** `wsp_…` */
  workspaceId: string
  data: WalletChange
}

export type EventPage = {
  /** Events, in order of position. */
  content: Event[]
  /** The position that was sent. For `head`: the end of the log. */
  after: number
  /** The eventId at `after`. If it is not the ID that you stored, the history was replaced. Null at 0 and for `head`. */
  afterEventId: string | null
  /** The types that were sent. Empty: all types. */
  types: EventType[]
  /** The `after` of the next call. With a filter by `type`, it also passes events of other types. */
  last: number
  /** The eventId at `last`. Null at 0. */
  lastEventId: string | null
  /** Whether the log continues after `last`. */
  more: boolean
}

export type CompletedTransfer = {
  /** `trf_…` */
  transferId: string
  /** As it was sent. If none was sent, the transferId. */
  bizId: string
  status: 'COMPLETED'
  /** Decimal, as it was sent. */
  amount: string
  /** Currency code. */
  currency: string
  /** `wal_…` */
  sourceWalletId: string
  /** `wal_…` */
  targetWalletId: string
  /** As it was sent, or null. */
  remark: string | null
  /** As it was sent, or null. */
  reference: string | null
  /** `hld_…`, the hold that the transfer captured, or null. */
  holdId: string | null
  /** The transferId of the first transfer of its batch. Null outside batches. */
  batchId: string | null
  /** The transferId of the transfer that it reverses, or null. */
  reversesTransferId: string | null
  /** ISO 8601, UTC, in milliseconds. */
  createdAt: string
  /** ISO 8601, UTC, in milliseconds. */
  updatedAt: string
  /** ISO 8601, UTC, in milliseconds. */
  completedAt: string
}

export type Funding = {
  /** `trf_…` */
  transferId: string
  /** As it was sent. If none was sent, the transferId. */
  bizId: string
  /** `wal_…` */
  walletId: string
  type: 'DEPOSIT' | 'WITHDRAWAL'
  /** Decimal, as it was sent. */
  amount: string
  /** Currency code. */
  currency: string
  holdId: string | null
  /** ISO 8601, UTC, in milliseconds. */
  createdAt: string
}

export type BalanceAfter = {
  /** `wal_…` */
  walletId: string
  sequence: number
  /** Decimal, with the number of decimals of its currency. */
  balanceAfter: string
}

export type WalletChange = {
  /** `wal_…` */
  walletId: string
  /** As it was sent, or null. */
  bizId: string | null
  /** Currency code. */
  currency: string
  /** The new status. */
  status: 'ACTIVE' | 'FROZEN' | 'CLOSED'
  /** Who did it: a client or an operator. */
  by: 'WORKSPACE' | 'OPERATOR'
}

export type Webhook = {
  /** `whk_…` */
  webhookId: string
  /** As it was sent. */
  bizId: string
  /** Where deliveries are sent. */
  url: string
  /** The types of events that are delivered. Empty: all. */
  types: EventType[]
  /** How many deliveries may be in progress at a time. With 1, they are strictly in order. */
  concurrency: number
  /** `PAUSED`: you or an operator paused it, or the service did because deliveries failed. */
  status: 'ACTIVE' | 'PAUSED'
  /** Every event up to this position has been delivered, or is of a type that is not in `types`. */
  position: number
  /** The HTTP status of the last attempt. Null if there was no response. */
  lastStatus: number | null
  /** Why the last attempt got no HTTP response. `ADDRESS`: the name of the URL does not resolve to public addresses. `TLS`: for example, the certificate has expired. `PROTOCOL`: the response is not HTTP. */
  lastError: 'ADDRESS' | 'CONNECTION' | 'TLS' | 'TIMEOUT' | 'PROTOCOL' | null
  /** When the last attempt was made. Null if there was none. */
  lastAttemptAt: string | null
  /** When the current series of failures began. Null after a success. */
  failingSince: string | null
  /** Until when deliveries are also signed with the previous secret. Null if they are not. */
  previousSecretUntil: string | null
  /** ISO 8601, UTC, in milliseconds. */
  createdAt: string
  /** When you, an operator or the service last changed it. Deliveries do not count. */
  updatedAt: string
}

export type IssuedWebhook = {
  /** `whk_…` */
  webhookId: string
  /** As it was sent. */
  bizId: string
  /** Where deliveries are sent. */
  url: string
  /** The types of events that are delivered. Empty: all. */
  types: EventType[]
  /** How many deliveries may be in progress at a time. With 1, they are strictly in order. */
  concurrency: number
  /** `PAUSED`: you or an operator paused it, or the service did because deliveries failed. */
  status: 'ACTIVE' | 'PAUSED'
  /** Every event up to this position has been delivered, or is of a type that is not in `types`. */
  position: number
  /** The HTTP status of the last attempt. Null if there was no response. */
  lastStatus: number | null
  /** Why the last attempt got no HTTP response. `ADDRESS`: the name of the URL does not resolve to public addresses. `TLS`: for example, the certificate has expired. `PROTOCOL`: the response is not HTTP. */
  lastError: 'ADDRESS' | 'CONNECTION' | 'TLS' | 'TIMEOUT' | 'PROTOCOL' | null
  /** When the last attempt was made. Null if there was none. */
  lastAttemptAt: string | null
  /** When the current series of failures began. Null after a success. */
  failingSince: string | null
  /** Until when deliveries are also signed with the previous secret. Null if they are not. */
  previousSecretUntil: string | null
  /** ISO 8601, UTC, in milliseconds. */
  createdAt: string
  /** When you, an operator or the service last changed it. Deliveries do not count. */
  updatedAt: string
  /** `whsec_…`, the key of the signatures. Null for a repeated call: rotate it. */
  secret: string | null
}

export type RotatedWebhook = {
  /** `whk_…` */
  webhookId: string
  /** As it was sent. */
  bizId: string
  /** Where deliveries are sent. */
  url: string
  /** The types of events that are delivered. Empty: all. */
  types: EventType[]
  /** How many deliveries may be in progress at a time. With 1, they are strictly in order. */
  concurrency: number
  /** `PAUSED`: you or an operator paused it, or the service did because deliveries failed. */
  status: 'ACTIVE' | 'PAUSED'
  /** Every event up to this position has been delivered, or is of a type that is not in `types`. */
  position: number
  /** The HTTP status of the last attempt. Null if there was no response. */
  lastStatus: number | null
  /** Why the last attempt got no HTTP response. `ADDRESS`: the name of the URL does not resolve to public addresses. `TLS`: for example, the certificate has expired. `PROTOCOL`: the response is not HTTP. */
  lastError: 'ADDRESS' | 'CONNECTION' | 'TLS' | 'TIMEOUT' | 'PROTOCOL' | null
  /** When the last attempt was made. Null if there was none. */
  lastAttemptAt: string | null
  /** When the current series of failures began. Null after a success. */
  failingSince: string | null
  /** Until when deliveries are also signed with the previous secret. Null if they are not. */
  previousSecretUntil: string | null
  /** ISO 8601, UTC, in milliseconds. */
  createdAt: string
  /** When you, an operator or the service last changed it. Deliveries do not count. */
  updatedAt: string
  /** `whsec_…`, the key of the signatures. Shown once. */
  secret: string
}

export type DeletedWebhook = {
  /** `whk_…` */
  webhookId: string
}

/** Decimal above zero, such as `100.50`: up to 38 digits, no more decimals than the currency has, no sign, no exponent, and no leading zero except before the point. */
export type Amount = string

export type CreateTransfer = {
  /** The wallet that the funds leave. */
  sourceWalletId: string
  /** The wallet that the funds enter. */
  targetWalletId: string
  amount: Amount
  /** Currency code, upper case. The currency of both wallets. */
  currency: Currency
  /** Your own ID, which makes the call safe to repeat: however often you send it, it takes effect once. Use each bizId for one thing only. 1 to 64 of `A-Z a-z 0-9 . _ : -`, beginning with a letter or digit. Reserved, and not allowed: `wallet`, `wsp_…`, `ak_…`, `wal_…`, `trf_…`, `flw_…`. Default: the transferId. */
  bizId?: string | undefined
  /** Text of up to 256 characters. */
  remark?: string | undefined
  /** What it belongs to, such as an invoice: 1 to 64 visible ASCII characters. */
  reference?: string | undefined
  /** The hold to capture, by holdId or bizId. It must be on the source wallet. An API key also needs the scope `hold:create`. */
  holdId?: string | undefined
  /** What happens to the rest of the hold: `KEEP` keeps it held, `RELEASE` releases it. Default: `RELEASE`. */
  holdRemainder?: 'KEEP' | 'RELEASE' | undefined
}

export type CreateTransferItem = {
  /** The wallet that the funds leave. */
  sourceWalletId: string
  /** The wallet that the funds enter. */
  targetWalletId: string
  amount: Amount
  /** Currency code, upper case. The currency of both wallets. */
  currency: Currency
  /** Your own ID, which makes the call safe to repeat: however often you send it, it takes effect once. Use each bizId for one thing only. 1 to 64 of `A-Z a-z 0-9 . _ : -`, beginning with a letter or digit. Reserved, and not allowed: `wallet`, `wsp_…`, `ak_…`, `wal_…`, `trf_…`, `flw_…`. */
  bizId: string
  /** Text of up to 256 characters. */
  remark?: string | undefined
  /** What it belongs to, such as an invoice: 1 to 64 visible ASCII characters. */
  reference?: string | undefined
  /** The hold to capture, by holdId or bizId. It must be on the source wallet. An API key also needs the scope `hold:create`. */
  holdId?: string | undefined
  /** What happens to the rest of the hold: `KEEP` keeps it held, `RELEASE` releases it. Default: `RELEASE`. */
  holdRemainder?: 'KEEP' | 'RELEASE' | undefined
}

export type ReverseTransfer = {
  /** The transfer to reverse, by transferId or bizId. */
  reversesTransferId: string
  amount: Amount
  /** Currency code, upper case. The currency of the transfer to reverse. */
  currency: Currency
  /** Your own ID, which makes the call safe to repeat: however often you send it, it takes effect once. Use each bizId for one thing only. 1 to 64 of `A-Z a-z 0-9 . _ : -`, beginning with a letter or digit. Reserved, and not allowed: `wallet`, `wsp_…`, `ak_…`, `wal_…`, `trf_…`, `flw_…`. */
  bizId: string
  /** Text of up to 256 characters. */
  remark?: string | undefined
  /** What it belongs to, such as an invoice: 1 to 64 visible ASCII characters. */
  reference?: string | undefined
}

export type CreateTransferBatch = {
  /** 1 to 100 items, which are decided in this order. An item with `reversesTransferId` is a reversal, with the fields of the body of reverse. Any other item is a transfer, with the fields of the body of create. Each item needs a `bizId` of its own. */
  transfers: (CreateTransferItem | ReverseTransfer)[]
}

export type CreateHold = {
  /** The wallet whose funds are reserved. */
  walletId: string
  amount: Amount
  /** Currency code, upper case. The currency of the wallet. */
  currency: Currency
  /** When the hold expires: 1 to 31536000 seconds after its creation. */
  expiresInSeconds: number
  /** Your own ID, which makes the call safe to repeat: however often you send it, it takes effect once. Use each bizId for one thing only. 1 to 64 of `A-Z a-z 0-9 . _ : -`, beginning with a letter or digit. Reserved, and not allowed: `hld_…`. */
  bizId: string
  /** Text of up to 256 characters. */
  remark?: string | undefined
  /** What it belongs to, such as an invoice: 1 to 64 visible ASCII characters. */
  reference?: string | undefined
}

export type ReleaseHold = {
  /** The hold to release, by holdId or bizId. */
  holdId: string
}

export type CreateWallet = {
  /** 1 to 128 characters on one line, at least one of them visible. */
  name: string
  /** Currency code, upper case. It never changes. */
  currency: Currency
  /** Your own ID, which makes the call safe to repeat: however often you send it, it takes effect once. Use each bizId for one thing only. 1 to 64 of `A-Z a-z 0-9 . _ : -`, beginning with a letter or digit. Reserved, and not allowed: `wal_…`. */
  bizId: string
}

export type ChangeWalletStatus = {
  /** `wal_…` */
  walletId: string
  /** The status that the wallet gets. A closed wallet stays closed; only an empty one can be closed. */
  status: 'ACTIVE' | 'FROZEN' | 'CLOSED'
}

export type CreateWebhook = {
  /** Where events are sent: an https URL of up to 2048 visible ASCII characters, without user name, password and fragment. Its port is 443, or 1024 or higher. Its host must have public addresses only. */
  url: string
  /** Your own ID, which makes the call safe to repeat: however often you send it, it takes effect once. Use each bizId for one thing only. 1 to 64 of `A-Z a-z 0-9 . _ : -`, beginning with a letter or digit. Reserved, and not allowed: `whk_…`. */
  bizId: string
  /** The types of events to send. Empty: all. */
  types?: EventType[] | undefined
  /** How many deliveries may be in progress at a time, 1 to 16. With 1, deliveries are strictly in order of position. */
  concurrency?: number | undefined
}

export type UpdateWebhook = {
  /** `whk_…` */
  webhookId: string
  /** Where events are sent: an https URL of up to 2048 visible ASCII characters, without user name, password and fragment. Its port is 443, or 1024 or higher. Its host must have public addresses only. */
  url?: string | undefined
  /** The types of events to send. Empty: all. */
  types?: EventType[] | undefined
  /** How many deliveries may be in progress at a time, 1 to 16. With 1, deliveries are strictly in order of position. */
  concurrency?: number | undefined
  /** `PAUSED` stops deliveries. `ACTIVE` resumes them after `position`. If deliveries were failing, it makes the next attempt at once. */
  status?: 'ACTIVE' | 'PAUSED' | undefined
}

export type RotateWebhook = {
  /** `whk_…` */
  webhookId: string
  /** How long deliveries are also signed with the previous secret, 0 to 604800 seconds. Default: 86400. */
  graceSeconds?: number | undefined
}

export type SeekWebhook = {
  /** `whk_…` */
  webhookId: string
  /** A position between 0 and the end of the log. The next delivery is the first event after it. */
  after: number
}

export type DeleteWebhook = {
  /** `whk_…` */
  webhookId: string
}

/** Currency code, upper case: ISO 4217 and the common crypto assets. */
export type Currency = string

/** The query of listWallets. */
export type ListWalletsQuery = {
  /** Page number, zero-based. Default: 0. */
  page?: number | undefined
  /** Items per page. Values above 100 are capped. Default: 20. */
  size?: number | undefined
  /** `field,direction`, direction `asc` or `desc`. Repeat it for several fields: the first is primary, later ones break ties. Sortable fields: `createdAt`, `updatedAt`, `amount`, `status`, `name`, `currency`. Default: newest first. */
  sort?: OneOrMore<Sort<'createdAt' | 'updatedAt' | 'amount' | 'status' | 'name' | 'currency'>> | undefined
  status?: 'ACTIVE' | 'FROZEN' | 'CLOSED' | undefined
  /** Currency code, upper case. */
  currency?: Currency | undefined
  /** ISO 8601 time with a zone, inclusive. A bare date is midnight UTC. */
  createdFrom?: string | undefined
  /** ISO 8601 time with a zone, exclusive. A bare date is midnight UTC. */
  createdTo?: string | undefined
  /** The beginning of the ID, 1 to 64 visible ASCII characters. */
  walletIdPrefix?: string | undefined
}

/** The query of listWalletFlows. */
export type ListWalletFlowsQuery = {
  /** Page number, zero-based. Default: 0. */
  page?: number | undefined
  /** Items per page. Values above 100 are capped. Default: 20. */
  size?: number | undefined
  /** `field,direction`, direction `asc` or `desc`. Repeat it for several fields: the first is primary, later ones break ties. Sortable fields: `createdAt`, `updatedAt`, `amount`, `status`. Default: newest first. */
  sort?: OneOrMore<Sort<'createdAt' | 'updatedAt' | 'amount' | 'status'>> | undefined
  direction?: 'IN' | 'OUT' | undefined
  type?: 'TRANSFER' | 'DEPOSIT' | 'WITHDRAWAL' | undefined
  /** ISO 8601 time with a zone, inclusive. A bare date is midnight UTC. */
  createdFrom?: string | undefined
  /** ISO 8601 time with a zone, exclusive. A bare date is midnight UTC. */
  createdTo?: string | undefined
  /** The beginning of the ID, 1 to 64 visible ASCII characters. */
  transferIdPrefix?: string | undefined
}

/** The query of listTransfers. */
export type ListTransfersQuery = {
  /** Page number, zero-based. Default: 0. */
  page?: number | undefined
  /** Items per page. Values above 100 are capped. Default: 20. */
  size?: number | undefined
  /** `field,direction`, direction `asc` or `desc`. Repeat it for several fields: the first is primary, later ones break ties. Sortable fields: `createdAt`, `updatedAt`, `amount`, `status`. Default: newest first. */
  sort?: OneOrMore<Sort<'createdAt' | 'updatedAt' | 'amount' | 'status'>> | undefined
  status?: 'COMPLETED' | undefined
  /** Currency code, upper case. */
  currency?: Currency | undefined
  /** ISO 8601 time with a zone, inclusive. A bare date is midnight UTC. */
  createdFrom?: string | undefined
  /** ISO 8601 time with a zone, exclusive. A bare date is midnight UTC. */
  createdTo?: string | undefined
  /** The beginning of the ID, 1 to 64 visible ASCII characters. */
  transferIdPrefix?: string | undefined
  /** The beginning of the ID, 1 to 64 visible ASCII characters. */
  bizIdPrefix?: string | undefined
  /** The whole value, as records show it, 1 to 64 visible ASCII characters. */
  reference?: string | undefined
  /** The whole value, as records show it, 1 to 64 visible ASCII characters. */
  holdId?: string | undefined
  /** The whole value, as records show it, 1 to 64 visible ASCII characters. */
  batchId?: string | undefined
  /** The whole value, as records show it, 1 to 64 visible ASCII characters. */
  reversesTransferId?: string | undefined
}

/** The query of listHolds. */
export type ListHoldsQuery = {
  /** Page number, zero-based. Default: 0. */
  page?: number | undefined
  /** Items per page. Values above 100 are capped. Default: 20. */
  size?: number | undefined
  /** `field,direction`, direction `asc` or `desc`. Repeat it for several fields: the first is primary, later ones break ties. Sortable fields: `createdAt`, `updatedAt`, `amount`, `status`. Default: newest first. */
  sort?: OneOrMore<Sort<'createdAt' | 'updatedAt' | 'amount' | 'status'>> | undefined
  status?: 'OPEN' | 'CAPTURED' | 'RELEASED' | 'EXPIRED' | undefined
  /** Currency code, upper case. */
  currency?: Currency | undefined
  /** ISO 8601 time with a zone, inclusive. A bare date is midnight UTC. */
  createdFrom?: string | undefined
  /** ISO 8601 time with a zone, exclusive. A bare date is midnight UTC. */
  createdTo?: string | undefined
  /** The whole value, as records show it, 1 to 64 visible ASCII characters. */
  reference?: string | undefined
  /** The beginning of the ID, 1 to 64 visible ASCII characters. */
  bizIdPrefix?: string | undefined
}

/** The query of readEvents. */
export type ReadEventsQuery = {
  /** Items per page. Values above 500 are capped. Default: 100. */
  size?: number | undefined
  /** Only events of this type. Repeat it for several types. */
  type?: OneOrMore<EventType> | undefined
}

/** The query of listWebhooks. */
export type ListWebhooksQuery = {
  /** Page number, zero-based. Default: 0. */
  page?: number | undefined
  /** Items per page. Values above 100 are capped. Default: 20. */
  size?: number | undefined
  /** `field,direction`, direction `asc` or `desc`. Repeat it for several fields: the first is primary, later ones break ties. Sortable fields: `createdAt`, `updatedAt`, `status`. Default: newest first. */
  sort?: OneOrMore<Sort<'createdAt' | 'updatedAt' | 'status'>> | undefined
  status?: 'ACTIVE' | 'PAUSED' | undefined
}

/** The error codes at the time of this release. docs/errors.md describes them. */
export type KnownErrorCode =
  | '50090201' // 403 API_ACCESS_DENIED
  | 'GA2001' // 401 API_KEY_MISSING
  | 'GA2011' // 401 API_KEY_NOT_FOUND
  | 'GA2021' // 403 API_KEY_DISABLED
  | 'GA2032' // 404 WORKSPACE_NOT_FOUND
  | 'GA2034' // 403 NOT_WORKSPACE_MEMBER
  | 'GA2013' // 401 REQUEST_EXPIRED_OR_REPLAYED
  | 'GA2012' // 401 SIGNATURE_INVALID
  | 'GA2022' // 403 IP_NOT_WHITELISTED
  | 'GA2024' // 403 API_ACCESS_DENIED
  | 'S012' // 400 INVALID_PARAMETER
  | 'S001' // 500 INTERNAL_ERROR
  | 'S002' // 503 SERVICE_UNAVAILABLE
  | 'S003' // 504 OUTCOME_UNKNOWN
  | 'S004' // 404 NOT_FOUND
  | 'S013' // 413 PAYLOAD_TOO_LARGE
  | 'S015' // 415 UNSUPPORTED_MEDIA_TYPE
  | 'S029' // 429 TOO_MANY_REQUESTS
  | 'W001' // 404 WALLET_NOT_FOUND
  | 'W002' // 409 WALLET_NOT_ACTIVE
  | 'W003' // 409 WALLET_NOT_EMPTY
  | 'W004' // 409 FROZEN_BY_OPERATOR
  | 'T001' // 404 TRANSFER_NOT_FOUND
  | 'T002' // 422 INSUFFICIENT_BALANCE
  | 'T003' // 422 CURRENCY_MISMATCH
  | 'T004' // 422 SAME_WALLET
  | 'T005' // 409 BIZ_ID_CONFLICT
  | 'T006' // 409 NOT_REVERSIBLE
  | 'T007' // 422 REVERSAL_EXCEEDED
  | 'T008' // 422 LIMIT_EXCEEDED
  | 'H001' // 404 HOLD_NOT_FOUND
  | 'H002' // 409 HOLD_NOT_OPEN
  | 'H003' // 422 HOLD_EXCEEDED
  | 'H004' // 422 HOLD_OF_OTHER_WALLET
  | 'E001' // 409 CURSOR_AHEAD
  | 'E002' // 404 WEBHOOK_NOT_FOUND
  | 'E003' // 409 TOO_MANY_WEBHOOKS
