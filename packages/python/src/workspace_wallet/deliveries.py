"""Verifies deliveries of webhooks (Standard Webhooks 1.0)."""

import base64
import hmac
import json
import re
import time
from collections.abc import Iterable, Sequence
from typing import Literal, Protocol, cast

from .records import Event

WebhookFault = Literal[
    "HEADER_MISSING",
    "HEADER_INVALID",
    "TIMESTAMP_TOO_OLD",
    "TIMESTAMP_TOO_NEW",
    "SIGNATURE_INVALID",
    "BODY_INVALID",
]
"""Why a delivery was rejected.

- `HEADER_MISSING`: it has no `webhook-id`, `webhook-timestamp` or `webhook-signature`.
- `HEADER_INVALID`: a header is sent more than once, or has no valid value.
- `TIMESTAMP_TOO_OLD`, `TIMESTAMP_TOO_NEW`: outside the tolerance. An old delivery is being replayed, or a clock is wrong.
- `SIGNATURE_INVALID`: signed with another secret, or the body was changed, for example parsed and written again.
- `BODY_INVALID`: the signature is valid, but the body is not the event that `webhook-id` names.
"""


class WebhookVerificationError(Exception):
    """A delivery is not genuine. Respond with 400 or 401, and apply nothing."""

    def __init__(self, fault: WebhookFault, text: str) -> None:
        super().__init__(text)
        self.fault: WebhookFault = fault


class Headers(Protocol):
    """The headers of a request: a dict, or those of Flask, Django (`request.headers`), Starlette or http.server."""

    def items(self) -> Iterable[tuple[str, str]]: ...


def verify_webhook(
    *,
    secret: str | Sequence[str],
    headers: Headers,
    body: bytes | str,
    now: float | None = None,
    tolerance_seconds: int = 300,
) -> Event:
    """Verifies a delivery, and returns its event.

    The same event can be delivered several times: store its `eventId` or `position` with its effects, and apply it once. Newer services
    may send other types of events: ignore them.

    Args:
        secret: the `whsec_…` of the webhook. During a rotation, pass both: a signature of either is enough.
        body: exactly as received, before anything parses it: its bytes, or their text
        now: seconds since the Unix epoch. Default: `time.time()`.
        tolerance_seconds: how far `webhook-timestamp` may be from the current time

    Raises:
        WebhookVerificationError: it is not genuine; `fault` says why
        TypeError, ValueError: a secret or the body is not what this function takes: a mistake in the program that calls it
    """
    secrets = [secret] if isinstance(secret, str) else list(secret)
    keys = [_key_of(each) for each in secrets]
    if not keys:
        raise ValueError("secret must have at least one whsec_… of the webhook")
    if not isinstance(body, (bytes, str)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError("body must be the bytes or the text of the request, exactly as received, not a parsed object")
    content = body.encode() if isinstance(body, str) else body
    id = _header_of(headers, "webhook-id")
    timestamp = _header_of(headers, "webhook-timestamp")
    signatures = _signatures_of(_header_of(headers, "webhook-signature"))
    _check_timestamp(timestamp, time.time() if now is None else now, tolerance_seconds)
    signed = f"{id}.{timestamp}.".encode() + content
    digests = [hmac.digest(key, signed, "sha256") for key in keys]
    if not any(hmac.compare_digest(digest, signature) for digest in digests for signature in signatures):
        raise WebhookVerificationError(
            "SIGNATURE_INVALID",
            "No signature is valid. Check that the secret is that of this webhook, and that the body is verified exactly as received.",
        )
    return _event_of(content, id)


_SECRET_PREFIX = "whsec_"


def _key_of(secret: object) -> bytes:
    """Raises ValueError that does not contain the secret."""
    text = secret if isinstance(secret, str) else ""
    key = _from_base64(text.removeprefix(_SECRET_PREFIX)) if text.startswith(_SECRET_PREFIX) else None
    if not key:
        raise ValueError(
            "secret must be the text that the service returned: whsec_ and base64. Check where it comes from"
        )
    return key


def _header_of(headers: Headers, name: str) -> str:
    values = [value for key, value in headers.items() if key.lower() == name]
    if not values or not values[0]:
        raise WebhookVerificationError(
            "HEADER_MISSING", f"The header {name} is missing. Check that proxies on the way pass it on."
        )
    if len(values) > 1:
        raise WebhookVerificationError("HEADER_INVALID", f"The header {name} was sent more than once.")
    return values[0]


_MAX_SIGNATURES = 16
"""A delivery of the service has at most two. The limit bounds the work that a forged header can cause."""


def _signatures_of(header: str) -> list[bytes]:
    """The signatures of version 1. Other versions are ignored."""
    signatures: list[bytes] = []
    for each in header.split(" "):
        version, _, signature = each.partition(",")
        decoded = _from_base64(signature) if version == "v1" else None
        if decoded:
            signatures.append(decoded)
    if not signatures:
        raise WebhookVerificationError(
            "HEADER_INVALID", "The header webhook-signature has no signature of the form v1,BASE64."
        )
    return signatures[:_MAX_SIGNATURES]


def _check_timestamp(timestamp: str, now: float, tolerance_seconds: int) -> None:
    if not re.fullmatch(r"[0-9]{1,15}", timestamp):
        raise WebhookVerificationError("HEADER_INVALID", "The header webhook-timestamp is not in whole seconds.")
    age = int(now) - int(timestamp)
    if abs(age) <= tolerance_seconds:
        return
    fault: WebhookFault = "TIMESTAMP_TOO_OLD" if age > 0 else "TIMESTAMP_TOO_NEW"
    direction = "ago" if age > 0 else "in the future"
    raise WebhookVerificationError(
        fault,
        f"The delivery was sent {abs(age)} seconds {direction}, and at most {tolerance_seconds} are accepted. Check the clock of this machine.",
    )


def _event_of(content: bytes, id: str) -> Event:
    try:
        value: object = json.loads(content)
    except (ValueError, RecursionError):
        value = None
    event = cast(dict[str, object], value) if isinstance(value, dict) else None
    if event is None or event.get("eventId") != id:
        raise WebhookVerificationError("BODY_INVALID", "The body is not the event that webhook-id names.")
    return cast(Event, event)


def _from_base64(text: str) -> bytes | None:
    """None if it is not base64."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return None
