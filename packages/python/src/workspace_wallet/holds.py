"""Holds of the workspace."""

from collections.abc import Iterator
from typing import Unpack

from .pages import Page, all_pages, items_of, page_of_wallet
from .records import CreateHold, Hold, ListHoldsQuery
from .request import Query, Requests, segment

_HOLDS = "/api/v1/hold/query/holds"


class HoldListQuery(ListHoldsQuery, total=False):
    """The query of a list of holds."""

    walletId: str
    """Only holds on this wallet."""


class Holds:
    """Parts of balances that are reserved.

    To capture a hold, create a transfer with its `holdId`. Reading needs the scope `hold:read`, creating and releasing `hold:create`,
    capturing `hold:create` and `transfer:create`.
    """

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    def create(self, **body: Unpack[CreateHold]) -> Hold:
        """Reserves money of a wallet. The same bizId with the same terms returns the same hold."""
        return self._requests.request("POST", "/api/v1/hold/command/create", body=body).data

    def release(self, id: str) -> Hold:
        """Ends a hold and makes what remains of it available.

        Releasing it again changes nothing. `id`: the bizId or holdId.
        """
        path = "/api/v1/hold/command/release"
        return self._requests.request("POST", path, body={"holdId": id}, is_repeatable=True).data

    def get(self, id: str) -> Hold:
        """`id`: the bizId or holdId."""
        return self._requests.request("GET", f"{_HOLDS}/{segment(id)}").data

    def list(self, **query: Unpack[HoldListQuery]) -> Page[Hold]:
        """One page of holds."""
        return self._list(query)

    def list_all(self, **query: Unpack[HoldListQuery]) -> Iterator[Hold]:
        """All holds, the oldest first. See "Lists" in the README for lists that change while you read."""
        return items_of(lambda page: self._list({**all_pages(query), "page": page}))

    def _list(self, query: Query) -> Page[Hold]:
        return page_of_wallet(self._requests, _HOLDS, query)
