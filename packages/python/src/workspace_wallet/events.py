"""The event log of the workspace."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, Unpack

from .errors import ApiError, HistoryReplacedError, RequestError
from .records import EventPage, EventType, ReadEventsQuery
from .request import Query, Requests, retry_delay, segment


class Events:
    """The event log of the workspace: everything that happened, in order, without gaps. Needs the scope `event:read`."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    def read(self, after: int | Literal["head"], **query: Unpack[ReadEventsQuery]) -> EventPage:
        """One page of the events after a position. With `head` it has no events, and `last` is the end of the log."""
        return self._read(after, query)

    def _read(self, after: int | str, query: Query) -> EventPage:
        path = f"/api/v1/event/query/events/{segment(after)}"
        return self._requests.request("GET", path, query=query).data

    def follow(
        self,
        after: int | Literal["head"],
        *,
        after_event_id: str | None = None,
        types: Sequence[EventType] | None = None,
        size: int | None = None,
        until_end: bool = False,
        poll_seconds: float = 1.0,
        on_retry: Callable[[RequestError], None] | None = None,
        stop: threading.Event | None = None,
    ) -> Iterator[EventPage]:
        """Follows the log: yields pages as events appear, until `stop` is set or the loop ends.

        It yields pages and not single events because a page has the cursor. To apply each event exactly once, store `last` and
        `lastEventId` in the same commit as the effects of `content`, and begin with them after a restart. With `types`, a page can have
        no events: its cursor has passed those of other types. A read that fails is retried without a limit, after pauses of at most 10
        seconds.

        Args:
            after: where to begin: `last` of the last page that you applied, 0 for the first event, or `head` for new events only
            after_event_id: `lastEventId` of that page. With it, a replaced history is also detected between two runs of your program.
            size: events on a page: 1 to 500. Default: 100.
            until_end: ends at the end of the log, instead of waiting for new events
            poll_seconds: how long to wait at the end of the log before it is read again
            on_retry: called with each failure that is retried, for your log
            stop: ends the iteration when it is set, between two pages or during a pause

        Raises:
            HistoryReplacedError: the log does not continue what was read
            ApiError: a failure that a retry does not resolve, such as a missing scope
        """
        query = {"type": types, "size": size}
        position: int | str = after
        event_id = after_event_id
        failures = 0
        while not (stop and stop.is_set()):
            try:
                page = self._read_after(position, event_id, query)
            except RequestError as error:
                delay = retry_delay(error, failures)
                if delay is None:
                    raise
                failures += 1
                if on_retry:
                    on_retry(error)
                _pause(delay, stop)
                continue
            failures = 0
            is_new = page["last"] != position
            position, event_id = page["last"], page["lastEventId"]
            if is_new:
                yield page
            if until_end and not page["more"]:
                return
            # A page that did not move the cursor would be read again and again without a pause.
            if not page["more"] or not is_new:
                _pause(poll_seconds, stop)

    def _read_after(self, after: int | str, event_id: str | None, query: Query) -> EventPage:
        """Reads one page after a cursor, and checks that its event is still the one that was read there."""
        try:
            page = self._read(after, query)
        except ApiError as error:
            if error.code == "E001":
                raise HistoryReplacedError(int(after), event_id, None) from error
            raise
        if event_id is not None and page["afterEventId"] != event_id:
            raise HistoryReplacedError(int(after), event_id, page["afterEventId"])
        return page


def _pause(seconds: float, stop: threading.Event | None) -> None:
    if stop:
        stop.wait(seconds)
    else:
        time.sleep(seconds)
