"""The public API of the Workspace Wallet and Transfer service."""

from .client import WalletClient
from .deliveries import WebhookFault, WebhookVerificationError, verify_webhook
from .errors import (
    ApiError,
    HistoryReplacedError,
    NoResponseError,
    Outcome,
    RequestError,
    ResponseTimeoutError,
    UnexpectedResponseError,
)
from .pages import Page
from .receipts import ReceiptClaims, ReceiptError, ReceiptKeys, verify_receipt
from .request import Response
from .signing import body_hash, canonical_message, sign, signed_headers
from .transport import ConnectError, HttpResponse, HttpTransport, Transport

__all__ = [
    "ApiError",
    "ConnectError",
    "HistoryReplacedError",
    "HttpResponse",
    "HttpTransport",
    "NoResponseError",
    "Outcome",
    "Page",
    "ReceiptClaims",
    "ReceiptError",
    "ReceiptKeys",
    "RequestError",
    "Response",
    "ResponseTimeoutError",
    "Transport",
    "UnexpectedResponseError",
    "WalletClient",
    "WebhookFault",
    "WebhookVerificationError",
    "body_hash",
    "canonical_message",
    "sign",
    "signed_headers",
    "verify_receipt",
    "verify_webhook",
]
