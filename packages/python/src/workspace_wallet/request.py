"""Signs requests, sends them, and sends them again if that is safe."""

import http.client
import json
import random
import re
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast
from urllib.parse import quote, urlencode

from .errors import (
    ApiError,
    ApiFailure,
    FailedRequest,
    NoResponseError,
    Outcome,
    RequestError,
    ResponseTimeoutError,
    UnexpectedResponseError,
)
from .settings import Settings
from .signing import signed_headers
from .transport import ConnectError, HttpResponse

Query = Mapping[str, object]
"""Parameters that are None are not sent, and those with several values are repeated."""


@dataclass(frozen=True)
class Response:
    """A successful response."""

    data: Any
    status: int
    request_id: str | None
    """Identifies the request in the logs of the service. Quote it when you report a problem."""
    timestamp: int
    """The time of the service, in milliseconds since the Unix epoch."""
    headers: Mapping[str, str]
    """By their names in lower case."""


def segment(id: str | int) -> str:
    """One segment of a path, percent-encoded. Raises ValueError if no path can have it."""
    text = str(id)
    if text in ("", ".", ".."):
        raise ValueError(f'"{text}" is not an ID')
    return quote(text, safe="")


def time_text(time: datetime | str) -> str:
    """ISO 8601 in UTC, in milliseconds. A text is sent as it is. Raises ValueError for a datetime without a zone."""
    if isinstance(time, str):
        return time
    if time.tzinfo is None:
        raise ValueError(f"{time!r} has no time zone: add one, such as tzinfo=timezone.utc")
    return time.isoformat(timespec="milliseconds")


class Requests:
    """Makes the requests of one client. Several threads can use it at once."""

    def __init__(self, settings: Settings, clock: "Clock | None" = None) -> None:
        self.settings = settings
        self.clock = clock or Clock()

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Mapping[str, object] | bytes | None = None,
        is_repeatable: bool | None = None,
    ) -> Response:
        """Signs and sends one request, retries it, and returns the response of a success.

        Args:
            path: percent-encoded, without a query string
            body: sent as JSON; bytes are sent as they are
            is_repeatable: whether the request may be sent again after an attempt that may have taken effect. Default: for GET, and
                for a body with a bizId, or with one in each transfer of a batch.

        Raises:
            RequestError: see its subclasses
            ValueError: the path cannot be sent
        """
        prepared = _prepare(self.settings, method.upper(), path, query or {}, body)
        if is_repeatable is None:
            is_repeatable = prepared.is_read or prepared.request.biz_id is not None or _is_batch_with_biz_ids(body)
        outcome: Outcome = "NOT_EXECUTED"
        has_set_clock = False
        failures = 0
        while True:
            try:
                return self._attempt(prepared, outcome)
            except _WrongTime as wrong:
                # The timestamp differs too much from the service's time, or a proxy sent the request twice.
                if not has_set_clock and self.clock.set(wrong.service_ms):
                    has_set_clock = True
                    continue
                failure: RequestError = wrong.error
            except RequestError as error:
                failure = error
            outcome = failure.outcome
            delay = retry_delay(failure, failures)
            failures += 1
            is_safe = outcome == "NOT_EXECUTED" or is_repeatable
            if delay is None or not is_safe or failures > self.settings.max_retries:
                raise failure
            time.sleep(delay)

    def _attempt(self, prepared: "_Prepared", earlier: Outcome) -> Response:
        """Signs a request with a new nonce and sends it once. `earlier`: the outcome of the attempts before this one."""
        settings, request = self.settings, prepared.request
        headers = signed_headers(
            settings.api_key,
            settings.api_secret,
            method=request.method,
            target=prepared.target,
            body=prepared.body or b"",
            timestamp=str(self.clock.now_ms() // 1000),
        )
        headers["X-LOCALE"] = settings.locale
        if prepared.body is not None:
            headers["Content-Type"] = "application/json"
        outcome: Outcome = "NOT_EXECUTED" if prepared.is_read else "UNKNOWN"
        url = settings.base_url + prepared.target
        try:
            response = settings.transport(request.method, url, headers, prepared.body, settings.timeout)
        except ConnectError as error:
            raise NoResponseError(_no_response("could not be sent", error), request, earlier) from error
        except TimeoutError as error:
            text = f"got no response within {settings.timeout:g} s"
            raise ResponseTimeoutError(text, request, outcome) from error
        except (OSError, http.client.HTTPException) as error:
            raise NoResponseError(_no_response("got no response", error), request, outcome) from error
        return _read(response, prepared, earlier)


def _no_response(what: str, error: Exception) -> str:
    return f"{what} ({error or type(error).__name__}): check base_url, and that the service runs"


class Clock:
    """The clock of the service: that of this machine, until a response shows that they differ."""

    def __init__(self) -> None:
        self._offset_ms = 0
        self._lock = threading.Lock()

    def now_ms(self) -> int:
        """The estimated time of the service, in milliseconds since the Unix epoch."""
        return int(time.time() * 1000) + self._offset_ms

    def set(self, service_ms: int) -> bool:
        """Returns False, and changes nothing, for a time that is far ahead.

        Somebody who responds in place of the service could claim a later time, keep the requests that are signed for it, and send
        them then.
        """
        offset_ms = service_ms - int(time.time() * 1000)
        if offset_ms > 24 * 60 * 60 * 1000:
            return False
        with self._lock:
            self._offset_ms = offset_ms
        return True


class _WrongTime(Exception):
    """The service rejected the timestamp or nonce (GA2013)."""

    def __init__(self, error: ApiError, service_ms: int) -> None:
        super().__init__(str(error))
        self.error = error
        self.service_ms = service_ms


@dataclass(frozen=True)
class _Prepared:
    """A request that is ready to be signed. All attempts send the same one."""

    request: FailedRequest
    target: str
    """The path with its query string."""
    body: bytes | None
    is_read: bool
    """Whether it is a GET, which changes nothing."""


def _prepare(
    settings: Settings, method: str, path: str, query: Query, body: Mapping[str, object] | bytes | None
) -> _Prepared:
    if not re.fullmatch(r"/[!-~]*", path) or re.search(r"[?#]|/\.\.?(/|$)", path):
        raise ValueError(
            f'The path "{path}" cannot be sent: begin it with a slash, percent-encode it, and pass the query string in "query"'
        )
    biz_id = body.get("bizId") if isinstance(body, Mapping) else None
    parameters = [(name, value) for name, values in query.items() for value in _listed(values)]
    return _Prepared(
        request=FailedRequest(method, path, biz_id if isinstance(biz_id, str) else None),
        target=f"{path}?{urlencode(parameters)}" if parameters else path,
        # Serialized once, so that all attempts sign and send the same bytes.
        body=_json(body) if isinstance(body, Mapping) else body,
        is_read=method == "GET",
    )


def _json(body: Mapping[str, object]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _listed(values: object) -> list[str]:
    if values is None:
        return []
    if isinstance(values, Sequence) and not isinstance(values, str):
        return [text for value in cast(Sequence[object], values) for text in _listed(value)]
    if isinstance(values, datetime):
        return [time_text(values)]
    return [str(values).lower() if isinstance(values, bool) else str(values)]


def _is_batch_with_biz_ids(body: object) -> bool:
    transfers: object = cast(Mapping[str, object], body).get("transfers") if isinstance(body, Mapping) else None
    if not isinstance(transfers, Sequence):
        return False
    items = cast(Sequence[object], transfers)
    return all(isinstance(item, Mapping) and isinstance(cast(Mapping[str, object], item).get("bizId"), str) for item in items)


def _read(response: HttpResponse, prepared: _Prepared, earlier: Outcome) -> Response:
    """Reads the response to an attempt. Raises ApiError or UnexpectedResponseError, or _WrongTime for GA2013."""
    status, headers = response.status, response.headers
    may_be_executed = not prepared.is_read and (status < 300 or (status >= 500 and status != 503))
    outcome: Outcome = "UNKNOWN" if may_be_executed else earlier
    envelope = _envelope_of(response.body)
    retry_after_seconds = _integer_of(headers, "retry-after")
    request_id = headers.get("x-request-id")
    if envelope is None:
        is_unknown = may_be_executed or (status == 503 and not prepared.is_read)
        raise UnexpectedResponseError(
            status, retry_after_seconds, prepared.request, "UNKNOWN" if is_unknown else earlier
        )
    timestamp = int(envelope["timestamp"])
    if envelope["success"]:
        return Response(envelope.get("data"), status, request_id, timestamp, headers)
    failure = ApiFailure(
        status=status,
        code=envelope["code"],
        reason=envelope["message"],
        detail=envelope.get("detail"),
        request_id=request_id,
        retry_after_seconds=retry_after_seconds,
        batch_index=_integer_of(headers, "x-batch-index"),
        transfer_id=headers.get("x-transfer-id"),
    )
    error = ApiError(failure, prepared.request, outcome)
    raise _WrongTime(error, timestamp) if error.code == "GA2013" else error


def _envelope_of(body: bytes) -> dict[str, Any] | None:
    """The response envelope (section 2.1). None if it is another text."""
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    envelope = cast(dict[str, Any], value)
    is_envelope = (
        isinstance(envelope.get("success"), bool)
        and isinstance(envelope.get("code"), str)
        and isinstance(envelope.get("message"), str)
        and isinstance(envelope.get("detail", ""), str)
        and type(envelope.get("timestamp")) is int
    )
    return envelope if is_envelope else None


def _integer_of(headers: Mapping[str, str], name: str) -> int | None:
    text = headers.get(name, "")
    return int(text) if re.fullmatch(r"[0-9]{1,15}", text) else None


_FIRST_DELAY = 0.25
_MAX_DELAY = 10.0
_MAX_RETRY_AFTER = 60
"""If `Retry-After` asks for more, the call fails, and the caller decides what to do."""
_TRANSIENT_STATUSES = (429, 502, 503, 504)


def retry_delay(error: RequestError, failures: int) -> float | None:
    """How many seconds to wait before a failed request is sent again. None if another attempt would fail too.

    Args:
        failures: how many attempts failed before this one
    """
    # Up to half of it is random, so that clients that failed together do not retry together.
    share = 0.5 + random.random() / 2
    backoff = min(_FIRST_DELAY * 2 ** min(failures, 16), _MAX_DELAY) * share
    if isinstance(error, NoResponseError):
        return backoff
    if not isinstance(error, (ApiError, UnexpectedResponseError)) or error.status not in _TRANSIENT_STATUSES:
        return None
    if error.retry_after_seconds is None:
        return backoff
    if error.retry_after_seconds > _MAX_RETRY_AFTER:
        return None
    return error.retry_after_seconds + _FIRST_DELAY * share
