/**
 * What each operation does and when to use it, in Markdown. Links to operations are `#operationId`: docs/api.md, the OpenAPI
 * document and the reference at /docs make their own links of them.
 */
export const descriptions = {
  listWallets:
    'Returns a page of the wallets of the workspace, with their balances, the newest first. Use it to find a wallet by its currency, status or the beginning of its ID, or to show all wallets to a user. To look up one wallet, [get it](#getWallet).',
  getWallet:
    'Returns one wallet: its name, currency, status and balance. To know how much can be spent, [get its balance](#getWalletBalance), which also has what holds reserve.',
  getWalletBalance:
    'Returns the balance of a wallet now, how much of it open holds reserve, and how much can be spent. Use it before you offer a payment to a user. You need not check before a transfer: a transfer that exceeds what is available is refused with `T002`.',
  getWalletBalanceAt:
    'Returns the balance after all flows before `at`; 0 before the first flow. Use it for reports, and to compare your books with the ledger at the end of a day. The response never changes. You need not percent-encode the time: a plus in a path is a plus.',
  getWalletStatement:
    'Returns the opening and closing balance of a period, and the totals of its flows. Use it for statements and monthly reports. The response never changes. To get the flows themselves, [list them](#listWalletFlows) with the same times as `createdFrom` and `createdTo`. If the totals take more than 2 seconds to calculate, the call fails with `S012`: request statements of shorter periods, and add up their totals.',
  listWalletFlows:
    'Returns a page of the flows of a wallet, the newest first. A flow is one change of the balance: each transfer has one that leaves its source and one that enters its target. Use it to show the movements of an account; `balanceAfter` is the balance after each.',
  listTransfers:
    'Returns a page of the transfers of the workspace, the newest first. Use it to search by reference, time, hold, batch or original. To look up one transfer, [get it](#getTransfer) by your own ID. To follow everything that happens, [read events](#readEvents): a list can change while you read its pages.',
  listWalletTransfers:
    'Returns a page of the transfers that a wallet sent or received, the newest first, with the same filters as [all transfers](#listTransfers). To see the balance after each, [list the flows](#listWalletFlows) of the wallet.',
  getTransfer:
    'Returns one transfer, by your `bizId` or by its `transferId`. Use it to show a payment, and to find out how much of it was reversed. After `S003`, repeat the create instead: with its `bizId` it returns the same transfer.',
  getTransferCompletion:
    'Returns whether a transfer is completed, and nothing else about it. A transfer that exists is completed, because it is posted in one step: use this if your code expects to ask. [Get the transfer](#getTransfer) for everything else.',
  getTransferReceipt:
    'Returns proof of a transfer for somebody who does not trust you: a compact JWS (RFC 7515) with EdDSA over what the ledger says about the transfer. Anybody can verify it with the public keys at `/.well-known/jwks.json`, without asking the service. Each request returns the same bytes, until the operator changes the signing key.',
  createTransfer:
    'Moves money from one wallet to another of the same currency, at once or not at all. Choose the `bizId` before you send it, for example the number of your order: if you repeat the call with it, the money moves once, and the answer is the same. With `holdId`, the transfer captures a hold, for which the key also needs the scope `hold:create`. To move money between several wallets together, [create a batch](#createTransferBatch).',
  createTransferBatch:
    'Makes up to 100 transfers and reversals together: either all items are applied, or none. Use it for what must not happen in parts, such as a payment with a fee, a payroll, or an exchange between currencies. If an item is rejected, the response has its error code, and `X-Batch-Index` its zero-based position. An item that reverses a transfer also requires the scope `transfer:reverse`. An item that captures a hold also requires `hold:create`.',
  reverseTransfer:
    'Moves money of a transfer back from its target to its source. Use it for refunds. You can reverse a transfer in parts; all parts together never exceed it (`T007`). The target needs the money: otherwise the reversal is refused with `T002`. A reversal cannot be reversed itself.',
  listHolds:
    'Returns a page of the holds of the workspace, the newest first. Use it with `status=OPEN` to see what is reserved. To look up one hold, [get it](#getHold).',
  listWalletHolds:
    'Returns a page of the holds of one wallet, the newest first. Use it with `status=OPEN` to explain why less is available than the balance.',
  getHold:
    'Returns one hold, by your `bizId` or by its `holdId`: how much of it is captured, how much remains, and until when.',
  createHold:
    'Reserves a part of the balance of a wallet, so that nothing else can spend it. Use it when you know the amount before you deliver, as for a booking or an order. Then capture it with [a transfer](#createTransfer) that names it in `holdId`, as a whole or in parts, or [release it](#releaseHold). A hold that is neither expires at `expiresAt`, and what remains of it becomes available.',
  releaseHold:
    'Ends a hold, and makes what remains of it available again. Use it if the order is cancelled. What was captured stays where it is. Releasing a hold again changes nothing.',
  readEvents:
    'Returns the events after a position, in order of commit and without gaps: everything that happened in the workspace, for ever. Use it to keep a copy, to reconcile, or to start processes of your own. Store `last` together with what you do with the events, and continue from it. To have events sent to you, [create a webhook](#createWebhook).',
  createWallet:
    'Creates an empty wallet in one currency. Use it for each user, account or purpose that needs a balance of its own. Repeat it with the same `bizId` as often as you like: there will be one wallet.',
  changeWalletStatus:
    'Freezes, unfreezes or closes a wallet. `FROZEN` stops all transfers from and to it until you set `ACTIVE`: use it if you suspect fraud. `CLOSED` is final, and the wallet must be empty. Only an operator can unfreeze or close a wallet that an operator froze (`W004`).',
  listWebhooks:
    'Returns a page of the webhooks of the workspace, the newest first, without those that are deleted. Use it to see which are behind: `position` is the last event that was delivered, `failingSince` says since when deliveries fail.',
  getWebhook:
    'Returns one webhook: its settings, how far it is, and how its last delivery ended. Its secret is returned only when it is created or rotated.',
  createWebhook:
    'Has every later event of the workspace sent to a URL. Use it instead of asking for events again and again. Each delivery is a POST whose body is one event of [Read events](#readEvents), signed according to [Standard Webhooks](https://www.standardwebhooks.com): `webhook-signature` contains `v1,` and the Base64 of the HMAC-SHA256 of `webhook-id`, `webhook-timestamp` and the body, joined by dots. The key of the HMAC is the Base64 text after `whsec_`, decoded. During a rotation there are two signatures, separated by a space. Store the `secret`, which is returned once. With the scope `webhook:manage`, a key can see all events through a webhook, even without `event:read`. A workspace has at most 16 webhooks.',
  updateWebhook:
    'Changes where events are sent, which, and how many at once; or pauses and resumes deliveries. Fields that you leave out do not change. A delivery in progress does not change. In rare cases, further deliveries are sent with the earlier settings for up to a minute.',
  rotateWebhookSecret:
    'Returns a new secret for the signatures of deliveries. Use it regularly, and at once if the secret may be known to others, then with `graceSeconds` 0. During the grace period, deliveries are signed with both secrets. Another rotation ends the grace period of the previous one. If the outcome is unknown (`S003`), rotate again: each call returns another secret.',
  seekWebhook:
    'Moves a webhook to another position of the event log. A lower position delivers events again, with the same `webhook-id`: use it after you lost data. A higher one skips events, such as one that your receiver cannot process. `last` of `GET /api/v1/event/query/events/head` is the end of the log.',
  deleteWebhook:
    'Ends deliveries to a webhook for good. To stop them for a time, [pause it](#updateWebhook). Its `bizId` cannot be used again. The call can be repeated.',
} as const
