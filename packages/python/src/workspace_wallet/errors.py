"""What can go wrong with a request."""

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["NOT_EXECUTED", "UNKNOWN"]
"""Whether a failed command may have taken effect.

`UNKNOWN`: it may have, or still will. Send it again with the same body, and so with the same bizId, until you get a response: it
takes effect only once. Reads change nothing, so a failed read is always `NOT_EXECUTED`.
"""


@dataclass(frozen=True)
class FailedRequest:
    """A request, as errors describe it."""

    method: str
    path: str
    biz_id: str | None
    """The bizId of the command, also if the client generated it. None for reads, batches, releases and changes of status."""


class RequestError(Exception):
    """A request failed. All errors of requests extend this class."""

    def __init__(self, text: str, request: FailedRequest, outcome: Outcome) -> None:
        super().__init__(f"{request.method} {request.path} {text}")
        self.method = request.method
        self.path = request.path
        self.biz_id = request.biz_id
        self.outcome: Outcome = outcome
        """Covers all attempts: if one may have taken effect, it is `UNKNOWN`."""


@dataclass(frozen=True)
class ApiFailure:
    """The contents of a failure envelope and its headers."""

    status: int
    code: str
    reason: str
    detail: str | None
    request_id: str | None
    retry_after_seconds: int | None
    batch_index: int | None
    transfer_id: str | None


class ApiError(RequestError):
    """The service responded with an error code. docs/errors.md of the service lists them."""

    def __init__(self, failure: ApiFailure, request: FailedRequest, outcome: Outcome) -> None:
        quoted = f" ({failure.request_id})" if failure.request_id else ""
        detail = f": {failure.detail}" if failure.detail else ""
        super().__init__(f"failed with {failure.status} {failure.code} {failure.reason}{quoted}{detail}", request, outcome)
        self.code = failure.code
        """Such as `T002`. A newer service may return others than `KnownErrorCode`: treat an unknown code by its `status`."""
        self.reason = failure.reason
        """The symbolic name of the code, such as `INSUFFICIENT_BALANCE`."""
        self.detail = failure.detail
        """A sentence in the language of `locale` that says what to fix. For people: programs compare `code`."""
        self.request_id = failure.request_id
        """Identifies the request in the logs of the service. Quote it when you report a problem."""
        self.status = failure.status
        """The HTTP status."""
        self.retry_after_seconds = failure.retry_after_seconds
        """How long to wait before another attempt. Set with status 429 and 503."""
        self.batch_index = failure.batch_index
        """The zero-based place of the transfer that made a batch fail."""
        self.transfer_id = failure.transfer_id
        """With S003: the transferId that the order has if the command took effect."""


class UnexpectedResponseError(RequestError):
    """Something else responded, such as a proxy or another server."""

    def __init__(self, status: int, retry_after_seconds: int | None, request: FailedRequest, outcome: Outcome) -> None:
        text = f"got a response with status {status} that is not one of this service: check base_url, and the proxies on the way"
        super().__init__(text, request, outcome)
        self.status = status
        self.retry_after_seconds = retry_after_seconds


class NoResponseError(RequestError):
    """The service could not be reached, or the connection was lost. `__cause__` is the error of the connection."""


class ResponseTimeoutError(NoResponseError):
    """No complete response within the time-out."""


class HistoryReplacedError(Exception):
    """The event log is not the one that was read before.

    An earlier copy of the database was restored, and events that were read are gone. Copy the data again, and follow the log from
    there.
    """

    def __init__(self, after: int, expected_event_id: str | None, found_event_id: str | None) -> None:
        found = "Another event is at position" if found_event_id else "The log ends before position"
        super().__init__(
            f"The event log was replaced by an earlier copy. {found} {after}: copy your data from the service again."
        )
        self.after = after
        """The cursor that the log does not continue."""
        self.expected_event_id = expected_event_id
        """The event that was read at this position. None if the caller did not say."""
        self.found_event_id = found_event_id
        """The event that is at this position now. None if the log ends before it (E001)."""
