"""The records of the API, the bodies and queries that it takes, and its error codes.

Generated from gateway/openapi.json by `npm run golden`. Amounts and balances are decimal strings, never floats: a float cannot
hold every amount exactly. Newer services may send further keys, types of events and error codes: ignore what you do not know.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class Wallet(TypedDict):
    walletId: str
    """`wal_…`"""
    bizId: str | None
    """As it was sent. Null for wallets that operators made without one."""
    name: str
    currency: str
    """Currency code."""
    status: Literal["ACTIVE", "FROZEN", "CLOSED"]
    balance: str
    """Decimal, with the number of decimals of its currency."""
    createdAt: str
    """ISO 8601, UTC, in milliseconds."""
    updatedAt: str
    """ISO 8601, UTC, in milliseconds."""


class Balance(TypedDict):
    walletId: str
    """`wal_…`"""
    currency: str
    """Currency code."""
    balance: str
    """Decimal, with the number of decimals of its currency."""
    held: str
    """The part of the balance that open holds reserve."""
    available: str
    """The rest of the balance, which can be spent."""
    sequence: int
    """The sequence of the last flow. 0 if there is none."""
    updatedAt: str
    """ISO 8601, UTC, in milliseconds."""


class BalanceAt(TypedDict):
    walletId: str
    """`wal_…`"""
    currency: str
    """Currency code."""
    at: str
    """The time that was sent: ISO 8601, UTC, in milliseconds."""
    balance: str
    """The balance after all flows before `at`, with the number of decimals of its currency."""
    sequence: int
    """The sequence of the last flow before `at`. 0 if there is none."""


WalletStatement = TypedDict(
    "WalletStatement",
    {
        # `wal_…`
        "walletId": str,
        # Currency code.
        "currency": str,
        # The time that was sent: ISO 8601, UTC, in milliseconds. Inclusive.
        "from": str,
        # The time that was sent: ISO 8601, UTC, in milliseconds. Exclusive.
        "to": str,
        # The balance before the first flow.
        "opening": str,
        # The balance after the last flow: `opening` plus `totalIn` minus `totalOut`.
        "closing": str,
        # The sum of the flows with the direction `IN`.
        "totalIn": str,
        # The sum of the flows with the direction `OUT`.
        "totalOut": str,
        # How many flows there are.
        "flowCount": int,
        # The sequence of the first flow. Null if there is none.
        "firstSequence": int | None,
        # The sequence of the last flow. Null if there is none.
        "lastSequence": int | None,
    },
)


class Flow(TypedDict):
    flowId: str
    """`flw_…`"""
    walletId: str
    """`wal_…`"""
    sequence: int
    """The number of the flow in its wallet: 1, 2, 3, without gaps."""
    direction: Literal["IN", "OUT"]
    type: Literal["TRANSFER", "DEPOSIT", "WITHDRAWAL"]
    amount: str
    """Decimal, as it was sent."""
    balanceAfter: str
    """Decimal, with the number of decimals of its currency."""
    currency: str
    """Currency code."""
    transferId: str
    """`trf_…`"""
    counterpartyWalletId: str | None
    """The other wallet of the transfer. Null for deposits and withdrawals."""
    createdAt: str
    """ISO 8601, UTC, in milliseconds."""


class TransferOrder(TypedDict):
    transferId: str
    """`trf_…`"""
    bizId: str
    """As it was sent. If none was sent, the transferId."""
    status: Literal["COMPLETED"]
    amount: str
    """Decimal, as it was sent."""
    currency: str
    """Currency code."""
    sourceWalletId: str
    """`wal_…`"""
    targetWalletId: str
    """`wal_…`"""
    remark: str | None
    """As it was sent, or null."""
    reference: str | None
    """As it was sent, or null."""
    holdId: str | None
    """`hld_…`, the hold that the transfer captured, or null."""
    batchId: str | None
    """The transferId of the first transfer of its batch. Null outside batches."""
    reversesTransferId: str | None
    """The transferId of the transfer that it reverses, or null."""
    createdAt: str
    """ISO 8601, UTC, in milliseconds."""
    updatedAt: str
    """ISO 8601, UTC, in milliseconds."""
    completedAt: str
    """ISO 8601, UTC, in milliseconds."""
    reversedAmount: str
    """The sum of its reversals, with the number of decimals of its currency."""


class TransferBatch(TypedDict):
    transfers: list[TransferOrder]
    """The transfer orders, in the order of the items."""


class TransferCompletion(TypedDict):
    transferId: str
    """`trf_…`"""
    bizId: str
    """As it was sent. If none was sent, the transferId."""
    status: Literal["COMPLETED"]
    completed: bool
    """Whether the status is `COMPLETED`."""


class TransferReceipt(TypedDict):
    receipt: str
    """A compact JWS. Its payload is a JSON object; see section 2.12 of the specification."""


class Hold(TypedDict):
    holdId: str
    """`hld_…`"""
    bizId: str
    """As it was sent."""
    walletId: str
    """`wal_…`"""
    currency: str
    """Currency code."""
    amount: str
    """Decimal, as it was sent."""
    capturedAmount: str
    """The sum of what transfers and withdrawals have captured."""
    remainingAmount: str
    """What the hold still reserves: the rest of the amount while it is `OPEN`, otherwise 0."""
    status: Literal["OPEN", "CAPTURED", "RELEASED", "EXPIRED"]
    expiresAt: str
    """ISO 8601, UTC, in milliseconds. From then on, the status is `EXPIRED` if it was `OPEN`."""
    reference: str | None
    """As it was sent, or null."""
    remark: str | None
    """As it was sent, or null."""
    createdAt: str
    """ISO 8601, UTC, in milliseconds."""
    updatedAt: str
    """ISO 8601, UTC, in milliseconds."""


class PageMetadata(TypedDict):
    size: int
    """The page size in effect."""
    number: int
    """The number of the page, zero-based. 0 if the list is empty."""
    totalElements: int
    """How many items all pages have together."""
    totalPages: int
    """How many pages there are. 0 if the list is empty."""


class TransferCompletedEventDataBalances(TypedDict):
    """`source` and `target`, each with `walletId`, `sequence` of the flow, and `balanceAfter`."""

    source: BalanceAfter
    target: BalanceAfter


class TransferCompletedEventData(TypedDict):
    transfer: CompletedTransfer
    """The order, as Get a transfer order returns it, without `reversedAmount`."""
    balances: TransferCompletedEventDataBalances
    """`source` and `target`, each with `walletId`, `sequence` of the flow, and `balanceAfter`."""
    holdRemaining: str | None
    """What remains of the hold that was captured; 0 if the rest was released. Null without a hold."""


class TransferCompletedEvent(TypedDict):
    eventId: str
    """`evt_…`, stable, and never used for another event."""
    position: int
    """The number of the event in its workspace, in order of commit: 1, 2, 3, without gaps."""
    type: Literal["transfer.completed"]
    timestamp: str
    """ISO 8601, UTC, in milliseconds. Never earlier than the time of the event before."""
    workspaceId: str
    """`wsp_…`"""
    data: TransferCompletedEventData


class WalletDepositedEventDataBalances(TypedDict):
    """`target`, with `walletId`, `sequence` of the flow, and `balanceAfter`."""

    target: BalanceAfter


class WalletDepositedEventData(TypedDict):
    funding: Funding
    """`transferId`, `bizId`, `walletId`, `type` (`DEPOSIT` or `WITHDRAWAL`), `amount`, `currency`, `holdId` or null, `createdAt`."""
    balances: WalletDepositedEventDataBalances
    """`target`, with `walletId`, `sequence` of the flow, and `balanceAfter`."""
    holdRemaining: str | None
    """What remains of the hold that was captured; 0 if the rest was released. Null without a hold."""


class WalletDepositedEvent(TypedDict):
    eventId: str
    """`evt_…`, stable, and never used for another event."""
    position: int
    """The number of the event in its workspace, in order of commit: 1, 2, 3, without gaps."""
    type: Literal["wallet.deposited"]
    timestamp: str
    """ISO 8601, UTC, in milliseconds. Never earlier than the time of the event before."""
    workspaceId: str
    """`wsp_…`"""
    data: WalletDepositedEventData


class WalletWithdrawnEventDataBalances(TypedDict):
    """`source`, with `walletId`, `sequence` of the flow, and `balanceAfter`."""

    source: BalanceAfter


class WalletWithdrawnEventData(TypedDict):
    funding: Funding
    """`transferId`, `bizId`, `walletId`, `type` (`DEPOSIT` or `WITHDRAWAL`), `amount`, `currency`, `holdId` or null, `createdAt`."""
    balances: WalletWithdrawnEventDataBalances
    """`source`, with `walletId`, `sequence` of the flow, and `balanceAfter`."""
    holdRemaining: str | None
    """What remains of the hold that was captured; 0 if the rest was released. Null without a hold."""


class WalletWithdrawnEvent(TypedDict):
    eventId: str
    """`evt_…`, stable, and never used for another event."""
    position: int
    """The number of the event in its workspace, in order of commit: 1, 2, 3, without gaps."""
    type: Literal["wallet.withdrawn"]
    timestamp: str
    """ISO 8601, UTC, in milliseconds. Never earlier than the time of the event before."""
    workspaceId: str
    """`wsp_…`"""
    data: WalletWithdrawnEventData


class HoldCreatedEventData(TypedDict):
    hold: Hold
    """The hold at the time of the event, as Get a hold returns it."""


class HoldCreatedEvent(TypedDict):
    eventId: str
    """`evt_…`, stable, and never used for another event."""
    position: int
    """The number of the event in its workspace, in order of commit: 1, 2, 3, without gaps."""
    type: Literal["hold.created"]
    timestamp: str
    """ISO 8601, UTC, in milliseconds. Never earlier than the time of the event before."""
    workspaceId: str
    """`wsp_…`"""
    data: HoldCreatedEventData


class HoldReleasedEventData(TypedDict):
    hold: Hold
    """The hold at the time of the event, as Get a hold returns it."""


class HoldReleasedEvent(TypedDict):
    eventId: str
    """`evt_…`, stable, and never used for another event."""
    position: int
    """The number of the event in its workspace, in order of commit: 1, 2, 3, without gaps."""
    type: Literal["hold.released"]
    timestamp: str
    """ISO 8601, UTC, in milliseconds. Never earlier than the time of the event before."""
    workspaceId: str
    """`wsp_…`"""
    data: HoldReleasedEventData


class HoldExpiredEventData(TypedDict):
    hold: Hold
    """The hold at the time of the event, as Get a hold returns it."""


class HoldExpiredEvent(TypedDict):
    eventId: str
    """`evt_…`, stable, and never used for another event."""
    position: int
    """The number of the event in its workspace, in order of commit: 1, 2, 3, without gaps."""
    type: Literal["hold.expired"]
    timestamp: str
    """ISO 8601, UTC, in milliseconds. Never earlier than the time of the event before."""
    workspaceId: str
    """`wsp_…`"""
    data: HoldExpiredEventData


class WalletCreatedEvent(TypedDict):
    eventId: str
    """`evt_…`, stable, and never used for another event."""
    position: int
    """The number of the event in its workspace, in order of commit: 1, 2, 3, without gaps."""
    type: Literal["wallet.created"]
    timestamp: str
    """ISO 8601, UTC, in milliseconds. Never earlier than the time of the event before."""
    workspaceId: str
    """`wsp_…`"""
    data: WalletChange


class WalletFrozenEvent(TypedDict):
    eventId: str
    """`evt_…`, stable, and never used for another event."""
    position: int
    """The number of the event in its workspace, in order of commit: 1, 2, 3, without gaps."""
    type: Literal["wallet.frozen"]
    timestamp: str
    """ISO 8601, UTC, in milliseconds. Never earlier than the time of the event before."""
    workspaceId: str
    """`wsp_…`"""
    data: WalletChange


class WalletUnfrozenEvent(TypedDict):
    eventId: str
    """`evt_…`, stable, and never used for another event."""
    position: int
    """The number of the event in its workspace, in order of commit: 1, 2, 3, without gaps."""
    type: Literal["wallet.unfrozen"]
    timestamp: str
    """ISO 8601, UTC, in milliseconds. Never earlier than the time of the event before."""
    workspaceId: str
    """`wsp_…`"""
    data: WalletChange


class WalletClosedEvent(TypedDict):
    eventId: str
    """`evt_…`, stable, and never used for another event."""
    position: int
    """The number of the event in its workspace, in order of commit: 1, 2, 3, without gaps."""
    type: Literal["wallet.closed"]
    timestamp: str
    """ISO 8601, UTC, in milliseconds. Never earlier than the time of the event before."""
    workspaceId: str
    """`wsp_…`"""
    data: WalletChange


class EventPage(TypedDict):
    content: list[Event]
    """Events, in order of position."""
    after: int
    """The position that was sent. For `head`: the end of the log."""
    afterEventId: str | None
    """The eventId at `after`. If it is not the ID that you stored, the history was replaced. Null at 0 and for `head`."""
    types: list[EventType]
    """The types that were sent. Empty: all types."""
    last: int
    """The `after` of the next call. With a filter by `type`, it also passes events of other types."""
    lastEventId: str | None
    """The eventId at `last`. Null at 0."""
    more: bool
    """Whether the log continues after `last`."""


class CompletedTransfer(TypedDict):
    transferId: str
    """`trf_…`"""
    bizId: str
    """As it was sent. If none was sent, the transferId."""
    status: Literal["COMPLETED"]
    amount: str
    """Decimal, as it was sent."""
    currency: str
    """Currency code."""
    sourceWalletId: str
    """`wal_…`"""
    targetWalletId: str
    """`wal_…`"""
    remark: str | None
    """As it was sent, or null."""
    reference: str | None
    """As it was sent, or null."""
    holdId: str | None
    """`hld_…`, the hold that the transfer captured, or null."""
    batchId: str | None
    """The transferId of the first transfer of its batch. Null outside batches."""
    reversesTransferId: str | None
    """The transferId of the transfer that it reverses, or null."""
    createdAt: str
    """ISO 8601, UTC, in milliseconds."""
    updatedAt: str
    """ISO 8601, UTC, in milliseconds."""
    completedAt: str
    """ISO 8601, UTC, in milliseconds."""


class Funding(TypedDict):
    transferId: str
    """`trf_…`"""
    bizId: str
    """As it was sent. If none was sent, the transferId."""
    walletId: str
    """`wal_…`"""
    type: Literal["DEPOSIT", "WITHDRAWAL"]
    amount: str
    """Decimal, as it was sent."""
    currency: str
    """Currency code."""
    holdId: str | None
    createdAt: str
    """ISO 8601, UTC, in milliseconds."""


class BalanceAfter(TypedDict):
    walletId: str
    """`wal_…`"""
    sequence: int
    balanceAfter: str
    """Decimal, with the number of decimals of its currency."""


class WalletChange(TypedDict):
    walletId: str
    """`wal_…`"""
    bizId: str | None
    """As it was sent, or null."""
    currency: str
    """Currency code."""
    status: Literal["ACTIVE", "FROZEN", "CLOSED"]
    """The new status."""
    by: Literal["WORKSPACE", "OPERATOR"]
    """Who did it: a client or an operator."""


class Webhook(TypedDict):
    webhookId: str
    """`whk_…`"""
    bizId: str
    """As it was sent."""
    url: str
    """Where deliveries are sent."""
    types: list[EventType]
    """The types of events that are delivered. Empty: all."""
    concurrency: int
    """How many deliveries may be in progress at a time. With 1, they are strictly in order."""
    status: Literal["ACTIVE", "PAUSED"]
    """`PAUSED`: you or an operator paused it, or the service did because deliveries failed."""
    position: int
    """Every event up to this position has been delivered, or is of a type that is not in `types`."""
    lastStatus: int | None
    """The HTTP status of the last attempt. Null if there was no response."""
    lastError: Literal["ADDRESS", "CONNECTION", "TLS", "TIMEOUT", "PROTOCOL"] | None
    """Why the last attempt got no HTTP response. `ADDRESS`: the name of the URL does not resolve to public addresses. `TLS`: for example, the certificate has expired. `PROTOCOL`: the response is not HTTP."""
    lastAttemptAt: str | None
    """When the last attempt was made. Null if there was none."""
    failingSince: str | None
    """When the current series of failures began. Null after a success."""
    previousSecretUntil: str | None
    """Until when deliveries are also signed with the previous secret. Null if they are not."""
    createdAt: str
    """ISO 8601, UTC, in milliseconds."""
    updatedAt: str
    """When you, an operator or the service last changed it. Deliveries do not count."""


class IssuedWebhook(TypedDict):
    webhookId: str
    """`whk_…`"""
    bizId: str
    """As it was sent."""
    url: str
    """Where deliveries are sent."""
    types: list[EventType]
    """The types of events that are delivered. Empty: all."""
    concurrency: int
    """How many deliveries may be in progress at a time. With 1, they are strictly in order."""
    status: Literal["ACTIVE", "PAUSED"]
    """`PAUSED`: you or an operator paused it, or the service did because deliveries failed."""
    position: int
    """Every event up to this position has been delivered, or is of a type that is not in `types`."""
    lastStatus: int | None
    """The HTTP status of the last attempt. Null if there was no response."""
    lastError: Literal["ADDRESS", "CONNECTION", "TLS", "TIMEOUT", "PROTOCOL"] | None
    """Why the last attempt got no HTTP response. `ADDRESS`: the name of the URL does not resolve to public addresses. `TLS`: for example, the certificate has expired. `PROTOCOL`: the response is not HTTP."""
    lastAttemptAt: str | None
    """When the last attempt was made. Null if there was none."""
    failingSince: str | None
    """When the current series of failures began. Null after a success."""
    previousSecretUntil: str | None
    """Until when deliveries are also signed with the previous secret. Null if they are not."""
    createdAt: str
    """ISO 8601, UTC, in milliseconds."""
    updatedAt: str
    """When you, an operator or the service last changed it. Deliveries do not count."""
    secret: str | None
    """`whsec_…`, the key of the signatures. Null for a repeated call: rotate it."""


class RotatedWebhook(TypedDict):
    webhookId: str
    """`whk_…`"""
    bizId: str
    """As it was sent."""
    url: str
    """Where deliveries are sent."""
    types: list[EventType]
    """The types of events that are delivered. Empty: all."""
    concurrency: int
    """How many deliveries may be in progress at a time. With 1, they are strictly in order."""
    status: Literal["ACTIVE", "PAUSED"]
    """`PAUSED`: you or an operator paused it, or the service did because deliveries failed."""
    position: int
    """Every event up to this position has been delivered, or is of a type that is not in `types`."""
    lastStatus: int | None
    """The HTTP status of the last attempt. Null if there was no response."""
    lastError: Literal["ADDRESS", "CONNECTION", "TLS", "TIMEOUT", "PROTOCOL"] | None
    """Why the last attempt got no HTTP response. `ADDRESS`: the name of the URL does not resolve to public addresses. `TLS`: for example, the certificate has expired. `PROTOCOL`: the response is not HTTP."""
    lastAttemptAt: str | None
    """When the last attempt was made. Null if there was none."""
    failingSince: str | None
    """When the current series of failures began. Null after a success."""
    previousSecretUntil: str | None
    """Until when deliveries are also signed with the previous secret. Null if they are not."""
    createdAt: str
    """ISO 8601, UTC, in milliseconds."""
    updatedAt: str
    """When you, an operator or the service last changed it. Deliveries do not count."""
    secret: str
    """`whsec_…`, the key of the signatures. Shown once."""


class DeletedWebhook(TypedDict):
    webhookId: str
    """`whk_…`"""


class CreateTransfer(TypedDict):
    sourceWalletId: str
    """The wallet that the funds leave."""
    targetWalletId: str
    """The wallet that the funds enter."""
    amount: Amount
    currency: Currency
    """Currency code, upper case. The currency of both wallets."""
    bizId: NotRequired[str]
    """Your own ID, which makes the call safe to repeat: however often you send it, it takes effect once. Use each bizId for one thing only. 1 to 64 of `A-Z a-z 0-9 . _ : -`, beginning with a letter or digit. Reserved, and not allowed: `wallet`, `wsp_…`, `ak_…`, `wal_…`, `trf_…`, `flw_…`. Default: the transferId."""
    remark: NotRequired[str]
    """Text of up to 256 characters."""
    reference: NotRequired[str]
    """What it belongs to, such as an invoice: 1 to 64 visible ASCII characters."""
    holdId: NotRequired[str]
    """The hold to capture, by holdId or bizId. It must be on the source wallet. An API key also needs the scope `hold:create`."""
    holdRemainder: NotRequired[Literal["KEEP", "RELEASE"]]
    """What happens to the rest of the hold: `KEEP` keeps it held, `RELEASE` releases it. Default: `RELEASE`."""


class CreateTransferItem(TypedDict):
    sourceWalletId: str
    """The wallet that the funds leave."""
    targetWalletId: str
    """The wallet that the funds enter."""
    amount: Amount
    currency: Currency
    """Currency code, upper case. The currency of both wallets."""
    bizId: str
    """Your own ID, which makes the call safe to repeat: however often you send it, it takes effect once. Use each bizId for one thing only. 1 to 64 of `A-Z a-z 0-9 . _ : -`, beginning with a letter or digit. Reserved, and not allowed: `wallet`, `wsp_…`, `ak_…`, `wal_…`, `trf_…`, `flw_…`."""
    remark: NotRequired[str]
    """Text of up to 256 characters."""
    reference: NotRequired[str]
    """What it belongs to, such as an invoice: 1 to 64 visible ASCII characters."""
    holdId: NotRequired[str]
    """The hold to capture, by holdId or bizId. It must be on the source wallet. An API key also needs the scope `hold:create`."""
    holdRemainder: NotRequired[Literal["KEEP", "RELEASE"]]
    """What happens to the rest of the hold: `KEEP` keeps it held, `RELEASE` releases it. Default: `RELEASE`."""


class ReverseTransfer(TypedDict):
    reversesTransferId: str
    """The transfer to reverse, by transferId or bizId."""
    amount: Amount
    currency: Currency
    """Currency code, upper case. The currency of the transfer to reverse."""
    bizId: str
    """Your own ID, which makes the call safe to repeat: however often you send it, it takes effect once. Use each bizId for one thing only. 1 to 64 of `A-Z a-z 0-9 . _ : -`, beginning with a letter or digit. Reserved, and not allowed: `wallet`, `wsp_…`, `ak_…`, `wal_…`, `trf_…`, `flw_…`."""
    remark: NotRequired[str]
    """Text of up to 256 characters."""
    reference: NotRequired[str]
    """What it belongs to, such as an invoice: 1 to 64 visible ASCII characters."""


class CreateTransferBatch(TypedDict):
    transfers: list[CreateTransferItem | ReverseTransfer]
    """1 to 100 items, which are decided in this order. An item with `reversesTransferId` is a reversal, with the fields of the body of reverse. Any other item is a transfer, with the fields of the body of create. Each item needs a `bizId` of its own."""


class CreateHold(TypedDict):
    walletId: str
    """The wallet whose funds are reserved."""
    amount: Amount
    currency: Currency
    """Currency code, upper case. The currency of the wallet."""
    expiresInSeconds: int
    """When the hold expires: 1 to 31536000 seconds after its creation."""
    bizId: str
    """Your own ID, which makes the call safe to repeat: however often you send it, it takes effect once. Use each bizId for one thing only. 1 to 64 of `A-Z a-z 0-9 . _ : -`, beginning with a letter or digit. Reserved, and not allowed: `hld_…`."""
    remark: NotRequired[str]
    """Text of up to 256 characters."""
    reference: NotRequired[str]
    """What it belongs to, such as an invoice: 1 to 64 visible ASCII characters."""


class ReleaseHold(TypedDict):
    holdId: str
    """The hold to release, by holdId or bizId."""


class CreateWallet(TypedDict):
    name: str
    """1 to 128 characters on one line, at least one of them visible."""
    currency: Currency
    """Currency code, upper case. It never changes."""
    bizId: str
    """Your own ID, which makes the call safe to repeat: however often you send it, it takes effect once. Use each bizId for one thing only. 1 to 64 of `A-Z a-z 0-9 . _ : -`, beginning with a letter or digit. Reserved, and not allowed: `wal_…`."""


class ChangeWalletStatus(TypedDict):
    walletId: str
    """`wal_…`"""
    status: Literal["ACTIVE", "FROZEN", "CLOSED"]
    """The status that the wallet gets. A closed wallet stays closed; only an empty one can be closed."""


class CreateWebhook(TypedDict):
    url: str
    """Where events are sent: an https URL of up to 2048 visible ASCII characters, without user name, password and fragment. Its port is 443, or 1024 or higher. Its host must have public addresses only."""
    bizId: str
    """Your own ID, which makes the call safe to repeat: however often you send it, it takes effect once. Use each bizId for one thing only. 1 to 64 of `A-Z a-z 0-9 . _ : -`, beginning with a letter or digit. Reserved, and not allowed: `whk_…`."""
    types: NotRequired[list[EventType]]
    """The types of events to send. Empty: all."""
    concurrency: NotRequired[int]
    """How many deliveries may be in progress at a time, 1 to 16. With 1, deliveries are strictly in order of position."""


class UpdateWebhook(TypedDict):
    webhookId: str
    """`whk_…`"""
    url: NotRequired[str]
    """Where events are sent: an https URL of up to 2048 visible ASCII characters, without user name, password and fragment. Its port is 443, or 1024 or higher. Its host must have public addresses only."""
    types: NotRequired[list[EventType]]
    """The types of events to send. Empty: all."""
    concurrency: NotRequired[int]
    """How many deliveries may be in progress at a time, 1 to 16. With 1, deliveries are strictly in order of position."""
    status: NotRequired[Literal["ACTIVE", "PAUSED"]]
    """`PAUSED` stops deliveries. `ACTIVE` resumes them after `position`. If deliveries were failing, it makes the next attempt at once."""


class RotateWebhook(TypedDict):
    webhookId: str
    """`whk_…`"""
    graceSeconds: NotRequired[int]
    """How long deliveries are also signed with the previous secret, 0 to 604800 seconds. Default: 86400."""


class SeekWebhook(TypedDict):
    webhookId: str
    """`whk_…`"""
    after: int
    """A position between 0 and the end of the log. The next delivery is the first event after it."""


class DeleteWebhook(TypedDict):
    webhookId: str
    """`whk_…`"""


class ListWalletsQuery(TypedDict):
    """The query of listWallets."""

    page: NotRequired[int]
    """Page number, zero-based. Default: 0."""
    size: NotRequired[int]
    """Items per page. Values above 100 are capped. Default: 20."""
    sort: NotRequired[str | list[str]]
    """`field,direction`, direction `asc` or `desc`. Repeat it for several fields: the first is primary, later ones break ties. Sortable fields: `createdAt`, `updatedAt`, `amount`, `status`, `name`, `currency`. Default: newest first."""
    status: NotRequired[Literal["ACTIVE", "FROZEN", "CLOSED"]]
    currency: NotRequired[Currency]
    """Currency code, upper case."""
    createdFrom: NotRequired[str]
    """ISO 8601 time with a zone, inclusive. A bare date is midnight UTC."""
    createdTo: NotRequired[str]
    """ISO 8601 time with a zone, exclusive. A bare date is midnight UTC."""
    walletIdPrefix: NotRequired[str]
    """The beginning of the ID, 1 to 64 visible ASCII characters."""


class ListWalletFlowsQuery(TypedDict):
    """The query of listWalletFlows."""

    page: NotRequired[int]
    """Page number, zero-based. Default: 0."""
    size: NotRequired[int]
    """Items per page. Values above 100 are capped. Default: 20."""
    sort: NotRequired[str | list[str]]
    """`field,direction`, direction `asc` or `desc`. Repeat it for several fields: the first is primary, later ones break ties. Sortable fields: `createdAt`, `updatedAt`, `amount`, `status`. Default: newest first."""
    direction: NotRequired[Literal["IN", "OUT"]]
    type: NotRequired[Literal["TRANSFER", "DEPOSIT", "WITHDRAWAL"]]
    createdFrom: NotRequired[str]
    """ISO 8601 time with a zone, inclusive. A bare date is midnight UTC."""
    createdTo: NotRequired[str]
    """ISO 8601 time with a zone, exclusive. A bare date is midnight UTC."""
    transferIdPrefix: NotRequired[str]
    """The beginning of the ID, 1 to 64 visible ASCII characters."""


class ListTransfersQuery(TypedDict):
    """The query of listTransfers."""

    page: NotRequired[int]
    """Page number, zero-based. Default: 0."""
    size: NotRequired[int]
    """Items per page. Values above 100 are capped. Default: 20."""
    sort: NotRequired[str | list[str]]
    """`field,direction`, direction `asc` or `desc`. Repeat it for several fields: the first is primary, later ones break ties. Sortable fields: `createdAt`, `updatedAt`, `amount`, `status`. Default: newest first."""
    status: NotRequired[Literal["COMPLETED"]]
    currency: NotRequired[Currency]
    """Currency code, upper case."""
    createdFrom: NotRequired[str]
    """ISO 8601 time with a zone, inclusive. A bare date is midnight UTC."""
    createdTo: NotRequired[str]
    """ISO 8601 time with a zone, exclusive. A bare date is midnight UTC."""
    transferIdPrefix: NotRequired[str]
    """The beginning of the ID, 1 to 64 visible ASCII characters."""
    bizIdPrefix: NotRequired[str]
    """The beginning of the ID, 1 to 64 visible ASCII characters."""
    reference: NotRequired[str]
    """The whole value, as records show it, 1 to 64 visible ASCII characters."""
    holdId: NotRequired[str]
    """The whole value, as records show it, 1 to 64 visible ASCII characters."""
    batchId: NotRequired[str]
    """The whole value, as records show it, 1 to 64 visible ASCII characters."""
    reversesTransferId: NotRequired[str]
    """The whole value, as records show it, 1 to 64 visible ASCII characters."""


class ListHoldsQuery(TypedDict):
    """The query of listHolds."""

    page: NotRequired[int]
    """Page number, zero-based. Default: 0."""
    size: NotRequired[int]
    """Items per page. Values above 100 are capped. Default: 20."""
    sort: NotRequired[str | list[str]]
    """`field,direction`, direction `asc` or `desc`. Repeat it for several fields: the first is primary, later ones break ties. Sortable fields: `createdAt`, `updatedAt`, `amount`, `status`. Default: newest first."""
    status: NotRequired[Literal["OPEN", "CAPTURED", "RELEASED", "EXPIRED"]]
    currency: NotRequired[Currency]
    """Currency code, upper case."""
    createdFrom: NotRequired[str]
    """ISO 8601 time with a zone, inclusive. A bare date is midnight UTC."""
    createdTo: NotRequired[str]
    """ISO 8601 time with a zone, exclusive. A bare date is midnight UTC."""
    reference: NotRequired[str]
    """The whole value, as records show it, 1 to 64 visible ASCII characters."""
    bizIdPrefix: NotRequired[str]
    """The beginning of the ID, 1 to 64 visible ASCII characters."""


class ReadEventsQuery(TypedDict):
    """The query of readEvents."""

    size: NotRequired[int]
    """Items per page. Values above 500 are capped. Default: 100."""
    type: NotRequired[EventType | list[EventType]]
    """Only events of this type. Repeat it for several types."""


class ListWebhooksQuery(TypedDict):
    """The query of listWebhooks."""

    page: NotRequired[int]
    """Page number, zero-based. Default: 0."""
    size: NotRequired[int]
    """Items per page. Values above 100 are capped. Default: 20."""
    sort: NotRequired[str | list[str]]
    """`field,direction`, direction `asc` or `desc`. Repeat it for several fields: the first is primary, later ones break ties. Sortable fields: `createdAt`, `updatedAt`, `status`. Default: newest first."""
    status: NotRequired[Literal["ACTIVE", "PAUSED"]]


Event = (
    TransferCompletedEvent
    | WalletDepositedEvent
    | WalletWithdrawnEvent
    | HoldCreatedEvent
    | HoldReleasedEvent
    | HoldExpiredEvent
    | WalletCreatedEvent
    | WalletFrozenEvent
    | WalletUnfrozenEvent
    | WalletClosedEvent
)

EventType = Literal[
    "transfer.completed",
    "wallet.deposited",
    "wallet.withdrawn",
    "hold.created",
    "hold.released",
    "hold.expired",
    "wallet.created",
    "wallet.frozen",
    "wallet.unfrozen",
    "wallet.closed",
]

Amount = str

Currency = str

KnownErrorCode = Literal[
    "50090201",  # 403 API_ACCESS_DENIED
    "GA2001",  # 401 API_KEY_MISSING
    "GA2011",  # 401 API_KEY_NOT_FOUND
    "GA2021",  # 403 API_KEY_DISABLED
    "GA2032",  # 404 WORKSPACE_NOT_FOUND
    "GA2034",  # 403 NOT_WORKSPACE_MEMBER
    "GA2013",  # 401 REQUEST_EXPIRED_OR_REPLAYED
    "GA2012",  # 401 SIGNATURE_INVALID
    "GA2022",  # 403 IP_NOT_WHITELISTED
    "GA2024",  # 403 API_ACCESS_DENIED
    "S012",  # 400 INVALID_PARAMETER
    "S001",  # 500 INTERNAL_ERROR
    "S002",  # 503 SERVICE_UNAVAILABLE
    "S003",  # 504 OUTCOME_UNKNOWN
    "S004",  # 404 NOT_FOUND
    "S013",  # 413 PAYLOAD_TOO_LARGE
    "S015",  # 415 UNSUPPORTED_MEDIA_TYPE
    "S029",  # 429 TOO_MANY_REQUESTS
    "W001",  # 404 WALLET_NOT_FOUND
    "W002",  # 409 WALLET_NOT_ACTIVE
    "W003",  # 409 WALLET_NOT_EMPTY
    "W004",  # 409 FROZEN_BY_OPERATOR
    "T001",  # 404 TRANSFER_NOT_FOUND
    "T002",  # 422 INSUFFICIENT_BALANCE
    "T003",  # 422 CURRENCY_MISMATCH
    "T004",  # 422 SAME_WALLET
    "T005",  # 409 BIZ_ID_CONFLICT
    "T006",  # 409 NOT_REVERSIBLE
    "T007",  # 422 REVERSAL_EXCEEDED
    "T008",  # 422 LIMIT_EXCEEDED
    "H001",  # 404 HOLD_NOT_FOUND
    "H002",  # 409 HOLD_NOT_OPEN
    "H003",  # 422 HOLD_EXCEEDED
    "H004",  # 422 HOLD_OF_OTHER_WALLET
    "E001",  # 409 CURSOR_AHEAD
    "E002",  # 404 WEBHOOK_NOT_FOUND
    "E003",  # 409 TOO_MANY_WEBHOOKS
]
"""The error codes at the time of this release. docs/errors.md of the service describes them."""
