import {
  type BalanceAt,
  type CompletedOrder,
  completedOrderRecord,
  deliveryErrors,
  type EventPage,
  type EventType,
  eventPage,
  eventTypes,
  type Flow,
  flowDirections,
  formatBalance,
  formatTime,
  type Hold,
  holdStatuses,
  type IdKind,
  type IssuedWebhook,
  idPattern,
  idPrefixes,
  maxWebhookConcurrency,
  pageOf,
  type RotatedWebhook,
  type TransferBatch,
  type TransferOrder,
  transferStatuses,
  transferTypes,
  type Wallet,
  type WalletBalance,
  type WalletStatement,
  type Webhook,
  walletChangers,
  walletStatuses,
  webhookStatuses,
} from '@workspace-wallet/contract'
import { z } from 'zod'
import { JsonText } from './json-text.ts'

/**
 * The schemas of public records. They are not used at run time, because encoding with them would cost 6 µs per create and
 * 90 µs per page of 20 orders. Instead, they type what endpoints return, docs/api.md is generated from them, and tests parse
 * real answers with them.
 */

const time = z.iso
  .datetime({ precision: 3 })
  // For the OpenAPI document: the pattern of zod also knows the days of months.
  .meta({ pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$' })
const createdAt = time.describe('ISO 8601, UTC, in milliseconds.')
const updatedAt = time.describe('ISO 8601, UTC, in milliseconds.')
const currency = z.string().describe('Currency code.')
const decimal = { pattern: '^(0|[1-9][0-9]*)(\\.[0-9]+)?$' }
const balance = z.string().meta({ ...decimal, description: 'Decimal, with the number of decimals of its currency.' })
const amount = z.string().meta({ ...decimal, description: 'Decimal, as it was sent.' })
const walletId = idOf('wallet')
const transferId = idOf('transfer')
const holdId = idOf('hold')
const sequence = z.int().min(0)
const bizId = z.string().describe('As it was sent. If none was sent, the transferId.')
const orderStatus = z.enum(transferStatuses)
const remark = z.string().nullable().describe('As it was sent, or null.')
const reference = z.string().nullable().describe('As it was sent, or null.')

/** The schema of a record. It must have every field of `Shown`, which core returns: so a new field fails the type check. */
function answerOf<Shown>() {
  return <Shape extends { [Name in keyof Shown]: z.ZodType }>(shape: Shape) => z.strictObject(shape)
}

function idOf(kind: IdKind) {
  return z.string().meta({ description: `\`${idPrefixes[kind]}_…\``, pattern: idPattern(kind) })
}

export const walletAnswer = answerOf<Wallet>()({
  walletId,
  bizId: z.string().nullable().describe('As it was sent. Null for wallets that operators made without one.'),
  name: z.string(),
  currency,
  status: z.enum(walletStatuses),
  balance,
  createdAt,
  updatedAt,
})

export const balanceAnswer = answerOf<WalletBalance>()({
  walletId,
  currency,
  balance,
  held: balance.describe('The part of the balance that open holds reserve.'),
  available: balance.describe('The rest of the balance, which can be spent.'),
  sequence: sequence.describe('The sequence of the last flow. 0 if there is none.'),
  updatedAt,
})

export const balanceAtAnswer = answerOf<BalanceAt>()({
  walletId,
  currency,
  at: time.describe('The time that was sent: ISO 8601, UTC, in milliseconds.'),
  balance: balance.describe('The balance after all flows before `at`, with the number of decimals of its currency.'),
  sequence: sequence.describe('The sequence of the last flow before `at`. 0 if there is none.'),
})

export const statementAnswer = answerOf<WalletStatement>()({
  walletId,
  currency,
  from: time.describe('The time that was sent: ISO 8601, UTC, in milliseconds. Inclusive.'),
  to: time.describe('The time that was sent: ISO 8601, UTC, in milliseconds. Exclusive.'),
  opening: balance.describe('The balance before the first flow.'),
  closing: balance.describe('The balance after the last flow: `opening` plus `totalIn` minus `totalOut`.'),
  totalIn: balance.describe('The sum of the flows with the direction `IN`.'),
  totalOut: balance.describe('The sum of the flows with the direction `OUT`.'),
  flowCount: sequence.describe('How many flows there are.'),
  firstSequence: sequence.nullable().describe('The sequence of the first flow. Null if there is none.'),
  lastSequence: sequence.nullable().describe('The sequence of the last flow. Null if there is none.'),
})

export const flowAnswer = answerOf<Flow>()({
  flowId: idOf('flow'),
  walletId,
  sequence: sequence.describe('The number of the flow in its wallet: 1, 2, 3, without gaps.'),
  direction: z.enum(flowDirections),
  type: z.enum(transferTypes),
  amount,
  balanceAfter: balance,
  currency,
  transferId,
  counterpartyWalletId: walletId
    .nullable()
    .describe('The other wallet of the transfer. Null for deposits and withdrawals.'),
  createdAt,
})

/** An order at the time of its transfer. */
export const completedOrderAnswer = answerOf<CompletedOrder>()({
  transferId,
  bizId,
  status: orderStatus,
  amount,
  currency,
  sourceWalletId: walletId,
  targetWalletId: walletId,
  remark,
  reference,
  holdId: holdId.nullable().describe('`hld_…`, the hold that the transfer captured, or null.'),
  batchId: transferId.nullable().describe('The transferId of the first transfer of its batch. Null outside batches.'),
  reversesTransferId: transferId.nullable().describe('The transferId of the transfer that it reverses, or null.'),
  createdAt,
  updatedAt,
  completedAt: time.describe('ISO 8601, UTC, in milliseconds.'),
})

export const orderAnswer = completedOrderAnswer.extend({
  reversedAmount: balance.describe('The sum of its reversals, with the number of decimals of its currency.'),
})

export const batchAnswer = z.strictObject({
  transfers: z.array(orderAnswer).describe('The transfer orders, in the order of the items.'),
})

export const completionAnswer = z.strictObject({
  transferId,
  bizId,
  status: orderStatus,
  completed: z.boolean().describe('Whether the status is `COMPLETED`.'),
})

export const receiptAnswer = z.strictObject({
  receipt: z
    .string()
    .meta({ pattern: '^[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]{86}$' })
    .describe('A compact JWS. Its payload is a JSON object; see section 2.12 of the specification.'),
})

export const holdAnswer = answerOf<Hold>()({
  holdId,
  bizId: z.string().describe('As it was sent.'),
  walletId,
  currency,
  amount,
  capturedAmount: balance.describe('The sum of what transfers and withdrawals have captured.'),
  remainingAmount: balance.describe(
    'What the hold still reserves: the rest of the amount while it is `OPEN`, otherwise 0.',
  ),
  status: z.enum(holdStatuses),
  expiresAt: time.describe('ISO 8601, UTC, in milliseconds. From then on, the status is `EXPIRED` if it was `OPEN`.'),
  reference,
  remark,
  createdAt,
  updatedAt,
})

export const fundingAnswer = z.strictObject({
  transferId,
  bizId,
  walletId,
  type: z.enum(['DEPOSIT', 'WITHDRAWAL']),
  amount,
  currency,
  holdId: holdId.nullable(),
  createdAt,
})

export const balanceAfterAnswer = z.strictObject({ walletId, sequence, balanceAfter: balance })
const holdRemaining = balance
  .nullable()
  .describe('What remains of the hold that was captured; 0 if the rest was released. Null without a hold.')
export const walletChangeAnswer = z.strictObject({
  walletId,
  bizId: z.string().nullable().describe('As it was sent, or null.'),
  currency,
  status: z.enum(walletStatuses).describe('The new status.'),
  by: z.enum(walletChangers).describe('Who did it: a client or an operator.'),
})
const holdEventAnswer = z.strictObject({
  hold: holdAnswer.describe('The hold at the time of the event, as [Get a hold](#getHold) returns it.'),
})
const funding = fundingAnswer.describe(
  '`transferId`, `bizId`, `walletId`, `type` (`DEPOSIT` or `WITHDRAWAL`), `amount`, `currency`, `holdId` or null, `createdAt`.',
)

/** `data` of the events of each type. */
export const eventDataAnswers = {
  'transfer.completed': z.strictObject({
    transfer: completedOrderAnswer.describe(
      'The order, as [Get a transfer order](#getTransfer) returns it, without `reversedAmount`.',
    ),
    balances: z
      .strictObject({ source: balanceAfterAnswer, target: balanceAfterAnswer })
      .describe('`source` and `target`, each with `walletId`, `sequence` of the flow, and `balanceAfter`.'),
    holdRemaining,
  }),
  'wallet.deposited': z.strictObject({
    funding,
    balances: z
      .strictObject({ target: balanceAfterAnswer })
      .describe('`target`, with `walletId`, `sequence` of the flow, and `balanceAfter`.'),
    holdRemaining,
  }),
  'wallet.withdrawn': z.strictObject({
    funding,
    balances: z
      .strictObject({ source: balanceAfterAnswer })
      .describe('`source`, with `walletId`, `sequence` of the flow, and `balanceAfter`.'),
    holdRemaining,
  }),
  'hold.created': holdEventAnswer,
  'hold.released': holdEventAnswer,
  'hold.expired': holdEventAnswer,
  'wallet.created': walletChangeAnswer,
  'wallet.frozen': walletChangeAnswer,
  'wallet.unfrozen': walletChangeAnswer,
  'wallet.closed': walletChangeAnswer,
} as const satisfies Record<EventType, z.ZodObject>

function eventAnswerOf<const Type extends EventType>(type: Type) {
  return z.strictObject({
    eventId: idOf('event').describe('`evt_…`, stable, and never used for another event.'),
    position: sequence.describe('The number of the event in its workspace, in order of commit: 1, 2, 3, without gaps.'),
    type: z.literal(type),
    timestamp: time.describe('ISO 8601, UTC, in milliseconds. Never earlier than the time of the event before.'),
    workspaceId: idOf('workspace'),
    data: eventDataAnswers[type],
  })
}

type EventAnswers = { [Type in EventType]: ReturnType<typeof eventAnswerOf<Type>> }
/** The schemas of events by type. */
export const eventAnswers = Object.fromEntries(eventTypes.map(type => [type, eventAnswerOf(type)])) as EventAnswers

export const eventAnswer = z.discriminatedUnion(
  'type',
  Object.values(eventAnswers) as [(typeof eventAnswers)[EventType]],
)

export const eventPageAnswer = z.strictObject({
  content: z.array(eventAnswer).describe('Events, in order of position.'),
  after: sequence.describe('The position that was sent. For `head`: the end of the log.'),
  afterEventId: idOf('event')
    .nullable()
    .describe(
      'The eventId at `after`. If it is not the ID that you stored, the history was replaced. Null at 0 and for `head`.',
    ),
  types: z.array(z.enum(eventTypes)).describe('The types that were sent. Empty: all types.'),
  last: sequence.describe(
    'The `after` of the next call. With a filter by `type`, it also passes events of other types.',
  ),
  lastEventId: idOf('event').nullable().describe('The eventId at `last`. Null at 0.'),
  more: z.boolean().describe('Whether the log continues after `last`.'),
})

const webhookId = idOf('webhook')
export const webhookAnswer = answerOf<Webhook>()({
  webhookId,
  bizId: z.string().describe('As it was sent.'),
  url: z.string().describe('Where deliveries are sent.'),
  types: z.array(z.enum(eventTypes)).describe('The types of events that are delivered. Empty: all.'),
  concurrency: z
    .int()
    .min(1)
    .max(maxWebhookConcurrency)
    .describe('How many deliveries may be in progress at a time. With 1, they are strictly in order.'),
  status: z
    .enum(webhookStatuses)
    .describe('`PAUSED`: you or an operator paused it, or the service did because deliveries failed.'),
  position: sequence.describe(
    'Every event up to this position has been delivered, or is of a type that is not in `types`.',
  ),
  lastStatus: z.int().nullable().describe('The HTTP status of the last attempt. Null if there was no response.'),
  lastError: z
    .enum(deliveryErrors)
    .nullable()
    .describe(
      'Why the last attempt got no HTTP response. `ADDRESS`: the name of the URL does not resolve to public addresses. `TLS`: for example, the certificate has expired. `PROTOCOL`: the response is not HTTP.',
    ),
  lastAttemptAt: time.nullable().describe('When the last attempt was made. Null if there was none.'),
  failingSince: time.nullable().describe('When the current series of failures began. Null after a success.'),
  previousSecretUntil: time
    .nullable()
    .describe('Until when deliveries are also signed with the previous secret. Null if they are not.'),
  createdAt,
  updatedAt: time.describe('When you, an operator or the service last changed it. Deliveries do not count.'),
})
const webhookSecret = z
  .string()
  .meta({ pattern: '^whsec_[A-Za-z0-9+/]{43}=$', description: '`whsec_…`, the key of the signatures. Shown once.' })
export const issuedWebhookAnswer = webhookAnswer.extend({
  secret: webhookSecret
    .nullable()
    .describe('`whsec_…`, the key of the signatures. Null for a repeated call: rotate it.'),
})
export const rotatedWebhookAnswer = webhookAnswer.extend({ secret: webhookSecret })
export const deletedWebhookAnswer = z.strictObject({ webhookId })
export const webhookPageAnswer = pageOf(webhookAnswer)

export const walletPageAnswer = pageOf(walletAnswer)
export const flowPageAnswer = pageOf(flowAnswer)
export const orderPageAnswer = pageOf(orderAnswer)
export const holdPageAnswer = pageOf(holdAnswer)

export function walletRecord(wallet: Wallet): z.output<typeof walletAnswer> {
  const { balance, currency, createdAt, updatedAt } = wallet
  return {
    ...wallet,
    balance: formatBalance(balance, currency),
    createdAt: formatTime(createdAt),
    updatedAt: formatTime(updatedAt),
  }
}

export function balanceRecord(balance: WalletBalance): z.output<typeof balanceAnswer> {
  const { currency, updatedAt } = balance
  return {
    ...balance,
    balance: formatBalance(balance.balance, currency),
    held: formatBalance(balance.held, currency),
    available: formatBalance(balance.available, currency),
    updatedAt: formatTime(updatedAt),
  }
}

export function balanceAtRecord(balanceAt: BalanceAt): z.output<typeof balanceAtAnswer> {
  const { at, balance, currency } = balanceAt
  return { ...balanceAt, at: formatTime(at), balance: formatBalance(balance, currency) }
}

export function statementRecord(statement: WalletStatement): z.output<typeof statementAnswer> {
  const { currency, from, to, opening, closing, totalIn, totalOut } = statement
  return {
    ...statement,
    from: formatTime(from),
    to: formatTime(to),
    opening: formatBalance(opening, currency),
    closing: formatBalance(closing, currency),
    totalIn: formatBalance(totalIn, currency),
    totalOut: formatBalance(totalOut, currency),
  }
}

export function flowRecord(flow: Flow): z.output<typeof flowAnswer> {
  const { balanceAfter, currency, createdAt } = flow
  return { ...flow, balanceAfter: formatBalance(balanceAfter, currency), createdAt: formatTime(createdAt) }
}

export function orderRecord({ reversedAmount, ...order }: TransferOrder): z.output<typeof orderAnswer> {
  return { ...completedOrderRecord(order), reversedAmount: formatBalance(reversedAmount, order.currency) }
}

export function completionRecord({ transferId, bizId, status }: TransferOrder): z.output<typeof completionAnswer> {
  return { transferId, bizId, status, completed: status === 'COMPLETED' }
}

export function batchRecord({ transfers }: TransferBatch): z.output<typeof batchAnswer> {
  return { transfers: transfers.map(orderRecord) }
}

/**
 * Core has serialized the events. Their text is not parsed, which would take 0.8 ms for 500 events, three times as long as unpacking them:
 * a core that was taken over could make up events as well.
 *
 * @throws Error if the answer is no page, because what it becomes might not be an object
 */
export function eventPageText(answer: EventPage): JsonText {
  const parsed = eventPage.safeParse(answer)
  if (!parsed.success) throw new Error('core returned a malformed page of events')
  const { content, ...page } = parsed.data
  return new JsonText(`{"content":${content},${JSON.stringify(page).slice(1)}`)
}

export function webhookRecord(webhook: Webhook): z.output<typeof webhookAnswer> {
  const { lastAttemptAt, failingSince, previousSecretUntil, createdAt, updatedAt } = webhook
  return {
    ...webhook,
    lastAttemptAt: lastAttemptAt && formatTime(lastAttemptAt),
    failingSince: failingSince && formatTime(failingSince),
    previousSecretUntil: previousSecretUntil && formatTime(previousSecretUntil),
    createdAt: formatTime(createdAt),
    updatedAt: formatTime(updatedAt),
  }
}

export function issuedWebhookRecord({ secret, ...webhook }: IssuedWebhook): z.output<typeof issuedWebhookAnswer> {
  return { ...webhookRecord(webhook), secret }
}

export function rotatedWebhookRecord({ secret, ...webhook }: RotatedWebhook): z.output<typeof rotatedWebhookAnswer> {
  return { ...webhookRecord(webhook), secret }
}
