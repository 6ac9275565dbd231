"""The signature of section 5.2 of the specification."""

import base64
import hashlib
import hmac
import time
import uuid


def body_hash(body: bytes | str) -> str:
    """The SHA-256 of the bytes of a body, in 64 lower-case hexadecimal digits. Without a body: that of no bytes."""
    return hashlib.sha256(_bytes_of(body)).hexdigest()


def canonical_message(*, method: str, path: str, timestamp: str, nonce: str, body_hash: str) -> str:
    """The five parts joined by LF, without a trailing one. `path`: as sent, without the query string."""
    return "\n".join([method.upper(), path, timestamp, nonce, body_hash])


def sign(secret: str | bytes, message: str) -> str:
    """The Base64 of the HMAC-SHA256 of the canonical message. The key is the API secret as UTF-8 bytes."""
    return base64.b64encode(hmac.digest(_bytes_of(secret), message.encode(), "sha256")).decode()


def signed_headers(
    api_key: str,
    api_secret: str,
    *,
    method: str,
    target: str,
    body: bytes | str = b"",
    timestamp: str | None = None,
    nonce: str | None = None,
) -> dict[str, str]:
    """The four headers that authenticate a request (section 5.1).

    Send the request unchanged, and only once: each request needs a new nonce, retries too.

    Args:
        target: the path with its query string, exactly as sent. The query string is not signed.
        body: the exact bytes of the body, or their text, which is sent as UTF-8.
        timestamp: whole seconds since the Unix epoch. Default: the time of this machine.
        nonce: Default: a random UUID.
    """
    timestamp = timestamp or str(int(time.time()))
    nonce = nonce or str(uuid.uuid4())
    path = target.partition("?")[0]
    message = canonical_message(
        method=method, path=path, timestamp=timestamp, nonce=nonce, body_hash=body_hash(body)
    )
    return {
        "X-Api-Key": api_key,
        "X-Timestamp": timestamp,
        "X-Nonce": nonce,
        "X-Signature": sign(api_secret, message),
    }


def _bytes_of(text: bytes | str) -> bytes:
    return text.encode() if isinstance(text, str) else text
