"""Transfers of the workspace."""

import uuid
from collections.abc import Iterator, Sequence
from typing import Unpack

from .pages import Page, all_pages, items_of, page_of_wallet
from .records import (
    CreateTransfer,
    CreateTransferItem,
    ListTransfersQuery,
    ReverseTransfer,
    TransferBatch,
    TransferOrder,
)
from .request import Query, Requests, segment

_ORDERS = "/api/v1/transfer/query/orders"


class TransferListQuery(ListTransfersQuery, total=False):
    """The query of a list of transfers."""

    walletId: str
    """Only transfers from and to this wallet."""


class Transfers:
    """The transfers of the workspace.

    Reading needs the scope `transfer:read`, creating `transfer:create`, reversing `transfer:reverse`. A transfer with a `holdId` also
    needs `hold:create`.
    """

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    def create(self, **transfer: Unpack[CreateTransfer]) -> TransferOrder:
        """Moves money from one wallet to another.

        Give it a bizId of your own, and store it before the call: if your program ends before the response, the same call with the
        same bizId returns the transfer that was made, or makes it. Without one, the client generates a UUID, which covers its own
        retries. Errors have it as `biz_id`.
        """
        body = {"bizId": str(uuid.uuid4()), **transfer}
        return self._requests.request("POST", "/api/v1/transfer/command/create", body=body).data

    def create_batch(self, transfers: Sequence[CreateTransferItem | ReverseTransfer]) -> TransferBatch:
        """Makes up to 100 transfers and reversals, all or none. `batch_index` of an ApiError is the place of the one that failed."""
        body = {"transfers": list(transfers)}
        return self._requests.request("POST", "/api/v1/transfer/command/batch", body=body).data

    def reverse(self, **reversal: Unpack[ReverseTransfer]) -> TransferOrder:
        """Moves the money of a transfer back, or a part of it."""
        return self._requests.request("POST", "/api/v1/transfer/command/reverse", body=reversal).data

    def get(self, id: str) -> TransferOrder:
        """`id`: the bizId or transferId."""
        return self._requests.request("GET", f"{_ORDERS}/{segment(id)}").data

    def is_completed(self, id: str) -> bool:
        """`id`: the bizId or transferId."""
        return self._requests.request("GET", f"{_ORDERS}/{segment(id)}/completed").data["completed"]

    def receipt(self, id: str) -> str:
        """A signed receipt of a transfer: a compact JWS.

        Anybody can verify it with the keys at `/.well-known/jwks.json`. `id`: the bizId or transferId.
        """
        return self._requests.request("GET", f"{_ORDERS}/{segment(id)}/receipt").data["receipt"]

    def list(self, **query: Unpack[TransferListQuery]) -> Page[TransferOrder]:
        """One page of transfers."""
        return self._list(query)

    def list_all(self, **query: Unpack[TransferListQuery]) -> Iterator[TransferOrder]:
        """All transfers, the oldest first. See "Lists" in the README for lists that change while you read."""
        return items_of(lambda page: self._list({**all_pages(query), "page": page}))

    def _list(self, query: Query) -> Page[TransferOrder]:
        return page_of_wallet(self._requests, _ORDERS, query)
