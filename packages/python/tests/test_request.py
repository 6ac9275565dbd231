"""Retries, errors and the clock, with scripted responses. service_tests.py runs the client against the service."""

import json
import unittest
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

from scripted import REFUSED, RESET, SECRET, SERVER_TIME, ScriptedTest, failure, page, success
from workspace_wallet import (
    ApiError,
    HttpResponse,
    NoResponseError,
    RequestError,
    ResponseTimeoutError,
    UnexpectedResponseError,
    WalletClient,
)
from workspace_wallet.records import UpdateWebhook
from workspace_wallet.webhooks import WebhookChanges

ORDER = {"sourceWalletId": "wal_1", "targetWalletId": "wal_2", "amount": "1.00", "currency": "USD"}


def create(client: WalletClient, **more: Any) -> object:
    return client.transfers.create(
        sourceWalletId="wal_1", targetWalletId="wal_2", amount="1.00", currency="USD", **more
    )


class Retries(ScriptedTest):
    def test_a_command_is_sent_again_with_the_same_body_and_a_new_nonce(self) -> None:
        client, sent = self.client_of(RESET, failure("S002", 503), failure("S003", 504), failure("S029", 429), success(7))
        response = client.request("POST", "/api/v1/x", body={**ORDER, "bizId": "b"})
        self.assertEqual((response.data, response.status, response.request_id), (7, 200, "req_2"))
        self.assertEqual(len(sent), 5)
        self.assertEqual(len({each.body for each in sent}), 1)
        for name in ("X-Nonce", "X-Signature"):
            self.assertEqual(len({each.headers[name] for each in sent}), 5, name)

    def test_a_create_without_a_biz_id_gets_one_which_all_attempts_and_the_error_have(self) -> None:
        client, sent = self.client_of(RESET)
        with self.assertRaises(NoResponseError) as raised:
            create(client)
        self.assertEqual(len(sent), 5)
        self.assertEqual({json.loads(each.body or b"")["bizId"] for each in sent}, {raised.exception.biz_id})
        self.assertRegex(str(raised.exception.biz_id), "^[0-9a-f-]{36}$")

    def test_pauses_grow_differ_and_are_bounded_in_number(self) -> None:
        client, sent = self.client_of(failure("S002", 503), max_retries=8)
        with self.assertRaises(ApiError):
            client.wallets.list()
        self.assertEqual(len(sent), 9)
        for at, pause in enumerate(self.pauses):
            longest = min(0.25 * 2**at, 10)
            self.assertTrue(longest / 2 <= pause <= longest, pause)
        self.assertGreater(len(set(self.pauses)), 1)

    def test_retry_after_wins_up_to_a_minute(self) -> None:
        client, _ = self.client_of(failure("S029", 429, {"retry-after": "7"}), page())
        client.wallets.list()
        self.assertTrue(7 <= self.pauses[0] <= 7.25)
        client, sent = self.client_of(failure("S029", 429, {"retry-after": "61"}))
        with self.assertRaises(ApiError) as raised:
            client.wallets.list()
        self.assertEqual(raised.exception.retry_after_seconds, 61)
        self.assertEqual(len(sent), 1)

    def test_a_response_that_would_be_the_same_again_is_not_retried(self) -> None:
        replies = [failure("T002", 422), failure("GA2012", 401), failure("S001", 500), HttpResponse(404, {}, b"<html>")]
        for reply in replies:
            client, sent = self.client_of(reply)
            with self.assertRaises(RequestError):
                create(client)
            self.assertEqual(len(sent), 1, reply)

    def test_an_unknown_code_is_retried_by_its_status(self) -> None:
        client, sent = self.client_of(failure("S999", 503), failure("S998", 429), page())
        client.wallets.list()
        self.assertEqual(len(sent), 3)

    def test_a_command_that_cannot_be_repeated_is_sent_again_only_if_it_certainly_had_no_effect(self) -> None:
        client, sent = self.client_of(REFUSED, failure("S002", 503), success())
        client.request("POST", "/api/v1/x", body=ORDER)
        self.assertEqual(len(sent), 3)
        for reply in (RESET, failure("S003", 504)):
            client, sent = self.client_of(reply)
            with self.assertRaises(RequestError) as raised:
                client.request("POST", "/api/v1/x", body=ORDER)
            self.assertEqual((raised.exception.outcome, len(sent)), ("UNKNOWN", 1))
        client, sent = self.client_of(RESET, success())
        with self.assertRaises(NoResponseError):
            client.request("POST", "/api/v1/x", body={"transfers": [{**ORDER, "bizId": "a"}, ORDER]})
        client.request("POST", "/api/v1/x", body={"transfers": [{**ORDER, "bizId": "a"}, {**ORDER, "bizId": "b"}]})

    def test_a_release_a_change_of_status_and_changes_of_webhooks_are_repeated(self) -> None:
        calls: list[Callable[[WalletClient], object]] = [
            lambda client: client.holds.release("hld_1"),
            lambda client: client.wallets.change_status("wal_1", "FROZEN"),
            lambda client: client.webhooks.update("whk_1", status="PAUSED"),
            lambda client: client.webhooks.seek("whk_1", 7),
            lambda client: client.webhooks.delete("whk_1"),
        ]
        for call in calls:
            client, sent = self.client_of(RESET, success())
            call(client)
            self.assertEqual(len(sent), 2)
        client, sent = self.client_of(RESET, success())
        with self.assertRaises(NoResponseError):
            client.webhooks.rotate("whk_1")
        self.assertEqual(len(sent), 1)


class Errors(ScriptedTest):
    def test_an_api_error_has_what_the_response_says(self) -> None:
        headers = {"retry-after": "90", "x-batch-index": "3", "x-transfer-id": "trf_1"}
        client, _ = self.client_of(failure("T002", 422, headers))
        with self.assertRaises(ApiError) as raised:
            create(client, bizId="b")
        error = raised.exception
        self.assertEqual(
            (error.code, error.reason, error.detail, error.request_id, error.status),
            ("T002", "NAME_OF_T002", "A sentence.", "req_1", 422),
        )
        self.assertEqual((error.retry_after_seconds, error.batch_index, error.transfer_id), (90, 3, "trf_1"))
        self.assertEqual((error.method, error.path), ("POST", "/api/v1/transfer/command/create"))
        self.assertEqual((error.biz_id, error.outcome), ("b", "NOT_EXECUTED"))
        self.assertEqual(
            str(error), "POST /api/v1/transfer/command/create failed with 422 T002 NAME_OF_T002 (req_1): A sentence."
        )

    def test_the_outcome_of_a_command(self) -> None:
        not_json = HttpResponse(200, {}, b'{"success":')
        cases: list[tuple[list[HttpResponse | Exception], type[RequestError], str]] = [
            ([REFUSED], NoResponseError, "NOT_EXECUTED"),
            ([RESET], NoResponseError, "UNKNOWN"),
            ([TimeoutError("timed out")], ResponseTimeoutError, "UNKNOWN"),
            ([failure("S002", 503)], ApiError, "NOT_EXECUTED"),
            ([failure("S003", 504)], ApiError, "UNKNOWN"),
            ([failure("S001", 500)], ApiError, "UNKNOWN"),
            ([HttpResponse(502, {}, b"Bad Gateway")], UnexpectedResponseError, "UNKNOWN"),
            ([HttpResponse(503, {}, b"{}")], UnexpectedResponseError, "UNKNOWN"),
            ([HttpResponse(404, {}, b"[]")], UnexpectedResponseError, "NOT_EXECUTED"),
            ([HttpResponse(301, {}, b"")], UnexpectedResponseError, "NOT_EXECUTED"),
            ([HttpResponse(200, {}, b"[" * 1_000_000)], UnexpectedResponseError, "UNKNOWN"),
            ([not_json], UnexpectedResponseError, "UNKNOWN"),
            # One attempt may have been executed, whatever the others got.
            ([RESET, REFUSED], NoResponseError, "UNKNOWN"),
            ([RESET, failure("T002", 422)], ApiError, "UNKNOWN"),
        ]
        for replies, kind, outcome in cases:
            with self.subTest(replies=replies):
                client, _ = self.client_of(*replies)
                with self.assertRaises(kind) as raised:
                    create(client)
                self.assertEqual(raised.exception.outcome, outcome)
                self.assertNotIn(SECRET, repr(raised.exception) + repr(vars(raised.exception)))
                client, _ = self.client_of(*replies)
                with self.assertRaises(kind) as raised:
                    client.wallets.list()
                self.assertEqual(raised.exception.outcome, "NOT_EXECUTED")


class TheClock(ScriptedTest):
    def test_ga2013_sets_it_from_the_response_once_and_later_calls_keep_it(self) -> None:
        self.now = SERVER_TIME / 1000 - 3600
        client, sent = self.client_of(failure("GA2013", 401), page())
        client.wallets.list()
        client.with_options(timeout=3).wallets.list()
        times = [int(each.headers["X-Timestamp"]) - SERVER_TIME // 1000 for each in sent]
        self.assertEqual((times, self.pauses), ([-3600, 0, 0], []))

    def test_a_second_ga2013_is_an_error(self) -> None:
        client, sent = self.client_of(failure("GA2013", 401))
        with self.assertRaises(ApiError):
            client.wallets.list()
        self.assertEqual(len(sent), 2)

    def test_a_time_more_than_a_day_ahead_is_ignored(self) -> None:
        self.now = SERVER_TIME / 1000 - 86_401
        client, sent = self.client_of(failure("GA2013", 401))
        with self.assertRaises(ApiError):
            client.wallets.list()
        self.assertEqual(len(sent), 1)


class WhatIsSent(ScriptedTest):
    def test_the_query_is_not_signed_and_repeats_names(self) -> None:
        client, sent = self.client_of(page())
        client.wallets.list(sort=["amount,asc", "createdAt,desc"], createdFrom="2026-01-01T00:00:00+01:00")
        self.assertEqual(
            sent[0].url,
            "https://wallet.example/api/v1/wallets?sort=amount%2Casc&sort=createdAt%2Cdesc"
            "&createdFrom=2026-01-01T00%3A00%3A00%2B01%3A00",
        )
        self.assertNotIn("Content-Type", sent[0].headers)
        self.assertEqual(sent[0].headers["X-LOCALE"], "en-US")

    def test_parameters_that_are_none_are_left_out(self) -> None:
        client, sent = self.client_of(page())
        client.request("GET", "/api/v1/x", query={"a": None, "b": [1, True], "c": "d e"})
        self.assertEqual(sent[0].url, "https://wallet.example/api/v1/x?b=1&b=true&c=d+e")

    def test_a_body_is_sent_as_utf_8(self) -> None:
        client, sent = self.client_of(success())
        client.wallets.create(name="Grüße 😀", currency="EUR", bizId="b")
        self.assertEqual(json.loads(sent[0].body or b"")["name"], "Grüße 😀")
        self.assertIn("Grüße 😀".encode(), sent[0].body or b"")
        self.assertEqual(sent[0].headers["Content-Type"], "application/json")

    def test_times_are_sent_with_their_zone(self) -> None:
        client, sent = self.client_of(success())
        client.wallets.balance_at("wal_1", datetime(2026, 1, 31, 12, tzinfo=timezone(timedelta(hours=1))))
        self.assertTrue(sent[0].url.endswith("/balance/2026-01-31T12%3A00%3A00.000%2B01%3A00"), sent[0].url)
        with self.assertRaisesRegex(ValueError, "no time zone"):
            client.wallets.balance_at("wal_1", datetime(2026, 1, 31, 12))

    def test_ids_are_percent_encoded_and_those_that_no_path_can_have_are_refused(self) -> None:
        client, sent = self.client_of(success())
        client.transfers.get("a/b ?#é..")
        self.assertEqual(
            sent[0].url, "https://wallet.example/api/v1/transfer/query/orders/a%2Fb%20%3F%23%C3%A9.."
        )
        for id in ("", ".", ".."):
            with self.assertRaisesRegex(ValueError, "is not an ID"):
                client.wallets.get(id)

    def test_a_path_that_cannot_be_sent_is_refused(self) -> None:
        client, sent = self.client_of(success())
        for path in ("/api/v1/../x", "/api/v1/..", "/api/v1/a b", "/api/v1/x?page=1", "/x#y", "x", "@elsewhere/x", "", "/\n"):
            with self.assertRaises(ValueError, msg=path):
                client.request("GET", path)
        self.assertEqual(sent, [])

    def test_all_pages_are_read_until_the_last_one(self) -> None:
        client, sent = self.client_of(page(1, 2, total_pages=2), page(3, total_pages=2))
        self.assertEqual(list(client.wallets.list_all(status="ACTIVE")), [1, 2, 3])
        self.assertEqual(
            sent[1].url,
            "https://wallet.example/api/v1/wallets?size=100&sort=createdAt%2Casc&status=ACTIVE&page=1",
        )


class Options(ScriptedTest):
    def test_an_invalid_option_fails_at_once_and_names_no_secret(self) -> None:
        cases: list[tuple[dict[str, Any], str]] = [
            ({"base_url": "localhost:8080"}, "base_url must be a URL without a path"),
            ({"base_url": "https://wallet.example/"}, "base_url must be a URL without a path"),
            ({"base_url": "https://wallet.example/api"}, "base_url must be a URL without a path"),
            ({"base_url": "https://user@wallet.example"}, "base_url must be a URL without a path"),
            ({"base_url": "https://wallet.example:99999"}, "base_url must be a URL without a path"),
            ({"api_key": ""}, "api_key is empty"),
            ({"api_key": "ak 1"}, "api_key must be text without spaces"),
            ({"api_secret": f"{SECRET}\n"}, "api_secret must be text without spaces and line breaks"),
            ({"api_secret": None}, "api_secret must be text"),
            ({"timeout": 0}, "timeout must be more than 0"),
            ({"max_retries": -1}, "max_retries must be 0 or more"),
        ]
        for options, text in cases:
            with self.subTest(options=options):
                with self.assertRaisesRegex(ValueError, text) as raised:
                    self.client_of(success(), **options)
                self.assertNotIn(SECRET, str(raised.exception))

    def test_the_settings_do_not_show_the_secret(self) -> None:
        client, _ = self.client_of(success())
        self.assertNotIn(SECRET, repr(client.with_options(locale="zh-CN")._requests.settings))  # pyright: ignore[reportPrivateUsage]

    def test_what_can_be_changed_of_a_webhook_is_what_the_api_takes(self) -> None:
        self.assertEqual({*WebhookChanges.__annotations__, "webhookId"}, set(UpdateWebhook.__annotations__))


if __name__ == "__main__":
    unittest.main()
