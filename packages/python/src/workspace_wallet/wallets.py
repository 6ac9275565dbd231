"""Wallets of the workspace."""

from collections.abc import Iterator
from datetime import datetime
from typing import Literal, Unpack

from .pages import Page, all_pages, items_of
from .records import (
    Balance,
    BalanceAt,
    CreateWallet,
    Flow,
    ListWalletFlowsQuery,
    ListWalletsQuery,
    Wallet,
    WalletStatement,
)
from .request import Query, Requests, segment, time_text


class Wallets:
    """The wallets of the workspace. Reading needs the scope `wallet:read`, changing `wallet:manage`."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    def list(self, **query: Unpack[ListWalletsQuery]) -> Page[Wallet]:
        """One page of wallets."""
        return self._list(query)

    def list_all(self, **query: Unpack[ListWalletsQuery]) -> Iterator[Wallet]:
        """All wallets, the oldest first. See "Lists" in the README for lists that change while you read."""
        return items_of(lambda page: self._list({**all_pages(query), "page": page}))

    def _list(self, query: Query) -> Page[Wallet]:
        return self._requests.request("GET", "/api/v1/wallets", query=query).data

    def get(self, wallet_id: str) -> Wallet:
        return self._requests.request("GET", f"/api/v1/wallets/{segment(wallet_id)}").data

    def balance(self, wallet_id: str) -> Balance:
        return self._requests.request("GET", f"/api/v1/wallets/{segment(wallet_id)}/balance").data

    def balance_at(self, wallet_id: str, at: datetime | str) -> BalanceAt:
        """The balance after all flows before a time, which is at least 30 seconds ago. A response never changes."""
        path = f"/api/v1/wallets/{segment(wallet_id)}/balance/{segment(time_text(at))}"
        return self._requests.request("GET", path).data

    def statement(self, wallet_id: str, start: datetime | str, end: datetime | str) -> WalletStatement:
        """The sums of the flows from `start` on and before `end`.

        `end` is at least 30 seconds ago and at most 400 days after `start`. A response never changes. Its lines are `all_flows` with
        the same times as `createdFrom` and `createdTo`.
        """
        times = f"{segment(time_text(start))}/{segment(time_text(end))}"
        return self._requests.request("GET", f"/api/v1/wallets/{segment(wallet_id)}/statement/{times}").data

    def flows(self, wallet_id: str, **query: Unpack[ListWalletFlowsQuery]) -> Page[Flow]:
        """One page of the flows of a wallet: what went in and out."""
        return self._flows(wallet_id, query)

    def all_flows(self, wallet_id: str, **query: Unpack[ListWalletFlowsQuery]) -> Iterator[Flow]:
        """All flows of a wallet, the oldest first."""
        return items_of(lambda page: self._flows(wallet_id, {**all_pages(query), "page": page}))

    def _flows(self, wallet_id: str, query: Query) -> Page[Flow]:
        return self._requests.request("GET", f"/api/v1/wallets/{segment(wallet_id)}/flows", query=query).data

    def create(self, **body: Unpack[CreateWallet]) -> Wallet:
        """Creates a wallet. The same bizId with the same currency and name returns the same wallet."""
        return self._requests.request("POST", "/api/v1/wallet/command/create", body=body).data

    def change_status(self, wallet_id: str, status: Literal["ACTIVE", "FROZEN", "CLOSED"]) -> Wallet:
        """Freezes, unfreezes or closes a wallet. Setting the status that it has changes nothing."""
        body = {"walletId": wallet_id, "status": status}
        path = "/api/v1/wallet/command/change-status"
        return self._requests.request("POST", path, body=body, is_repeatable=True).data
