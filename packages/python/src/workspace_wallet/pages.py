"""Lists, page by page."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypedDict, TypeVar

from .records import PageMetadata
from .request import Query, Requests, segment

Item = TypeVar("Item")


class Page(TypedDict, Generic[Item]):
    """One page of a list."""

    content: list[Item]
    page: PageMetadata


def page_of_wallet(requests: Requests, path: str, query: Query) -> Page[Any]:
    """One page of a list at `path`, or of a wallet's part of it if the query has a walletId."""
    rest = dict(query)
    wallet_id = rest.pop("walletId", None)
    if wallet_id is not None:
        path = f"{path}/wallet/{segment(str(wallet_id))}"
    return requests.request("GET", path, query=rest).data


def all_pages(query: Mapping[str, object]) -> dict[str, object]:
    """A query with the defaults for reading all pages: the largest pages, oldest first.

    New items are added at the end then, so none is returned twice or skipped while others are created.
    """
    return {"size": 100, "sort": "createdAt,asc", **query}


def items_of(read_page: Callable[[int], Page[Item]]) -> Iterator[Item]:
    """All items of a list, page by page, until the last page or an empty one."""
    number = 0
    while True:
        page = read_page(number)
        yield from page["content"]
        number += 1
        if not page["content"] or number >= page["page"]["totalPages"]:
            return
