"""The client and a running service. Needs BASE_URL, API_KEY, API_SECRET, and RECEIVER_URL, which webhooks may lead to.

CALLS_FILE gets a line for each request: its method and path.
"""

import os
import threading
import unittest
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from workspace_wallet import (
    ApiError,
    HistoryReplacedError,
    HttpResponse,
    HttpTransport,
    RequestError,
    UnexpectedResponseError,
    WalletClient,
)
from workspace_wallet.records import Wallet


class Recorded:
    """An HttpTransport that writes down each request."""

    def __init__(self) -> None:
        self.transport = HttpTransport()

    def __call__(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, timeout: float
    ) -> HttpResponse:
        with open(os.environ["CALLS_FILE"], "a", encoding="utf-8") as file:
            file.write(f"{method} {url.removeprefix(os.environ['BASE_URL']).partition('?')[0]}\n")
        return self.transport(method, url, headers, body, timeout)


def client_of(api_secret: str | None = None, base_url: str | None = None) -> WalletClient:
    return WalletClient(
        base_url=base_url or os.environ["BASE_URL"],
        api_key=os.environ["API_KEY"],
        api_secret=api_secret or os.environ["API_SECRET"],
        transport=Recorded(),
    )


def new_id() -> str:
    return str(uuid.uuid4())


class Service(unittest.TestCase):
    def setUp(self) -> None:
        self.client = client_of()
        wallets = [each for each in self.client.wallets.list_all(currency="USD", status="ACTIVE")]
        self.source = next(each for each in wallets if float(each["balance"]) >= 10)
        self.target = self.client.wallets.create(name="Kasse 😀", currency="USD", bizId=new_id())

    def transfer(self, amount: str = "1.00", **more: str) -> str:
        order = self.client.transfers.create(
            sourceWalletId=self.source["walletId"],
            targetWalletId=self.target["walletId"],
            amount=amount,
            currency="USD",
            bizId=more.get("bizId", new_id()),
        )
        return order["transferId"]

    def test_wallets(self) -> None:
        wallets, wallet = self.client.wallets, self.target
        self.assertEqual(wallets.get(wallet["walletId"]), wallet)
        self.assertEqual(wallets.change_status(wallet["walletId"], "FROZEN")["status"], "FROZEN")
        self.assertEqual(wallets.change_status(wallet["walletId"], "ACTIVE")["status"], "ACTIVE")
        newest: Wallet = wallets.list(size=1, sort="createdAt,desc")["content"][0]
        self.assertEqual(newest["walletId"], wallet["walletId"])
        self.transfer("2.50")
        balance = wallets.balance(wallet["walletId"])
        self.assertEqual((balance["balance"], balance["available"], balance["sequence"]), ("2.50", "2.50", 1))
        past = wallets.balance_at(wallet["walletId"], datetime(2026, 1, 1, tzinfo=UTC))
        self.assertEqual((past["balance"], past["sequence"]), ("0.00", 0))
        statement = wallets.statement(wallet["walletId"], "2026-01-01", datetime(2026, 2, 1, tzinfo=UTC))
        self.assertEqual((statement["from"], statement["flowCount"]), ("2026-01-01T00:00:00.000Z", 0))
        self.assertEqual(wallets.flows(wallet["walletId"], direction="IN")["content"][0]["amount"], "2.50")
        self.assertEqual([each["sequence"] for each in wallets.all_flows(wallet["walletId"])], [1])

    def test_transfers(self) -> None:
        transfers, biz_id = self.client.transfers, new_id()
        transfer_id = self.transfer(bizId=biz_id)
        self.assertEqual(self.transfer(bizId=biz_id), transfer_id)
        self.assertEqual(transfers.get(biz_id)["transferId"], transfer_id)
        self.assertTrue(transfers.is_completed(transfer_id))
        self.assertEqual(transfers.receipt(biz_id).count("."), 2)
        reversal = transfers.reverse(reversesTransferId=biz_id, amount="0.25", currency="USD", bizId=new_id())
        self.assertEqual(reversal["reversesTransferId"], transfer_id)
        batch = transfers.create_batch(
            [
                {
                    "sourceWalletId": self.source["walletId"],
                    "targetWalletId": self.target["walletId"],
                    "amount": "0.10",
                    "currency": "USD",
                    "bizId": new_id(),
                },
                {"reversesTransferId": biz_id, "amount": "0.25", "currency": "USD", "bizId": new_id()},
            ]
        )
        self.assertEqual([each["amount"] for each in batch["transfers"]], ["0.10", "0.25"])
        listed = transfers.list(walletId=self.target["walletId"])
        self.assertEqual(listed["page"]["totalElements"], 4)
        found = list(transfers.list_all(bizIdPrefix=biz_id))
        self.assertEqual([each["reversedAmount"] for each in found], ["0.50"])

    def test_holds(self) -> None:
        holds, wallet_id = self.client.holds, self.source["walletId"]
        hold = holds.create(walletId=wallet_id, amount="0.50", currency="USD", expiresInSeconds=3600, bizId=new_id())
        self.assertEqual(holds.get(hold["bizId"]), hold)
        self.assertIn(hold, holds.list(walletId=wallet_id, status="OPEN")["content"])
        self.assertIn(hold, list(holds.list_all()))
        self.assertEqual(holds.release(hold["holdId"])["status"], "RELEASED")

    def test_webhooks(self) -> None:
        webhooks, url = self.client.webhooks, os.environ["RECEIVER_URL"]
        webhook = webhooks.create(url=url, bizId=new_id(), types=["hold.expired"])
        webhook_id = webhook["webhookId"]
        self.assertRegex(webhook["secret"] or "", "^whsec_")
        self.assertEqual(webhooks.get(webhook_id)["types"], ["hold.expired"])
        self.assertEqual([each["webhookId"] for each in webhooks.list(status="ACTIVE")["content"]], [webhook_id])
        self.assertEqual(webhooks.update(webhook_id, status="PAUSED")["status"], "PAUSED")
        self.assertEqual(webhooks.seek(webhook_id, 1)["position"], 1)
        self.assertNotEqual(webhooks.rotate(webhook_id)["secret"], webhook["secret"])
        self.assertIsNone(webhooks.rotate(webhook_id, grace_seconds=0)["previousSecretUntil"])
        self.assertEqual(webhooks.delete(webhook_id), {"webhookId": webhook_id})
        self.assertEqual(list(webhooks.list_all()), [])

    def test_events_are_followed_to_the_end_and_beyond(self) -> None:
        events = self.client.events
        pages = list(events.follow(0, size=3, until_end=True))
        positions = [event["position"] for page in pages for event in page["content"]]
        self.assertEqual(positions, list(range(1, len(positions) + 1)))
        cursor = pages[-1]
        stop = threading.Event()
        following: Iterator[object] = events.follow(
            cursor["last"], after_event_id=cursor["lastEventId"], poll_seconds=0.01, stop=stop
        )
        self.transfer("0.33")
        page = events.read(cursor["last"])
        self.assertEqual(next(following), page)
        event = page["content"][0]
        assert event["type"] == "transfer.completed"
        self.assertEqual(event["data"]["transfer"]["amount"], "0.33")
        stop.set()
        self.assertIsNone(next(following, None))

    def test_a_history_that_was_replaced_is_an_error(self) -> None:
        events, head = self.client.events, self.client.events.read("head")
        for after, event_id in ((1, head["lastEventId"]), (head["last"] + 1, None)):
            with self.assertRaises(HistoryReplacedError) as raised:
                next(events.follow(after, after_event_id=event_id, until_end=True))
            self.assertEqual(raised.exception.after, after)

    def test_errors_of_the_service(self) -> None:
        with self.assertRaises(ApiError) as raised:
            self.transfer("1000000.00", bizId="too-much")
        error = raised.exception
        self.assertEqual((error.code, error.status, error.biz_id), ("T002", 422, "too-much"))
        self.assertRegex(error.request_id or "", "^req_")
        with self.assertRaises(ApiError) as raised:
            self.client.with_options(locale="zh-CN").wallets.get("wal_1")
        self.assertRegex(raised.exception.detail or "", "[一-鿿]")
        with self.assertRaises(ApiError) as raised:
            client_of(api_secret="wrong").wallets.list()
        self.assertEqual((raised.exception.code, raised.exception.outcome), ("GA2012", "NOT_EXECUTED"))

    def test_another_server_and_none(self) -> None:
        with self.assertRaises(UnexpectedResponseError):
            client_of(base_url=os.environ["RECEIVER_URL"]).wallets.list()
        with self.assertRaises(RequestError) as raised:
            # The system gives this port to no program.
            client_of(base_url="http://127.0.0.1:2").with_options(max_retries=0).wallets.list()
        self.assertIn("could not be sent", str(raised.exception))


if __name__ == "__main__":
    unittest.main()
