"""Verifies receipts without a call to the service."""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, cast


class ReceiptFlow(TypedDict):
    """A flow of a transfer: its sequence in the wallet, and its MAC in the ledger."""

    sequence: int
    mac: str


class ReceiptClaims(TypedDict):
    """What a receipt says. Times are ISO 8601 in UTC; `amount` is the text that was sent."""

    workspaceId: str
    transferId: str
    bizId: str
    amount: str
    currency: str
    sourceWalletId: str
    targetWalletId: str
    completedAt: str
    position: int
    """The position of the transfer in the event log."""
    reversesTransferId: str | None
    source: ReceiptFlow
    target: ReceiptFlow


class ReceiptKey(TypedDict):
    kid: str
    x: str


class ReceiptKeys(TypedDict):
    """The response of `/.well-known/jwks.json` of the service. You can store it: retired keys stay in it."""

    keys: Sequence[ReceiptKey]


class ReceiptError(Exception):
    """A receipt is not genuine: it was changed, or was not signed with one of the keys."""


def verify_receipt(receipt: str, keys: ReceiptKeys) -> ReceiptClaims:
    """Verifies a receipt (`transfers.receipt`) without a call to the service. Anybody who has the keys can do that.

    Args:
        receipt: White space around it, such as the newline at the end of a file, is ignored.

    Raises:
        ReceiptError: it is not genuine
        ImportError: the package `cryptography` is not installed
    """
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError as error:
        raise ImportError('verify_receipt needs cryptography: pip install "workspace-wallet[receipts]"') from error
    parts = receipt.strip().split(".")
    header = _json_of(parts[0])
    if len(parts) != 3 or header.get("alg") != "EdDSA" or header.get("typ") != "wallet-receipt+jwt":
        raise ReceiptError("The text is not a receipt: a compact JWS of the type wallet-receipt+jwt.")
    key = next((key for key in keys["keys"] if key["kid"] == header.get("kid")), None)
    if key is None:
        raise ReceiptError(f"The key {header.get('kid')} is unknown. Read /.well-known/jwks.json of the service again.")
    try:
        signed = f"{parts[0]}.{parts[1]}".encode()
        Ed25519PublicKey.from_public_bytes(_bytes_of(key["x"])).verify(_bytes_of(parts[2]), signed)
    except InvalidSignature as error:
        raise ReceiptError(
            "The signature is not valid: the receipt was changed, or signed with another key."
        ) from error
    return cast(ReceiptClaims, _json_of(parts[1]))


def _json_of(part: str) -> Mapping[str, Any]:
    try:
        value: object = json.loads(_bytes_of(part).decode())
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ReceiptError("The text is not a receipt: a part is not a JSON object.")
    return cast(dict[str, Any], value)


def _bytes_of(part: str) -> bytes:
    """Decodes base64url without padding. Each sequence of bytes has one form."""
    try:
        decoded = base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except ValueError:
        decoded = b""
    if base64.urlsafe_b64encode(decoded).decode().rstrip("=") != part:
        raise ReceiptError("The text is not a receipt: a part is not base64url.")
    return decoded
