#!/usr/bin/env python3
"""A client of the wallet service. Needs Python 3.9 and the standard library only.

Run as a program, it transfers 1.00 between the first two wallets with the same currency:

    python3 wallet_client.py --demo .data/demo.json
    BASE_URL=http://127.0.0.1:8080 API_KEY=ak_... API_SECRET=... python3 wallet_client.py
"""

import argparse
import base64
import hashlib
import hmac
import http.client
import json
import os
import sys
import time
import uuid
from decimal import Decimal
from urllib.parse import quote, urlencode, urlsplit


class WalletError(Exception):
    """Base class of all errors of this client."""


class ApiError(WalletError):
    """An error response. `code` is for programs; the text is for people."""

    def __init__(self, http_status, code, message, detail=None, retry_after=None):
        super().__init__(f"{code} {message} (HTTP {http_status}){': ' + detail if detail else ''}")
        self.http_status = http_status
        self.code = code
        self.message = message
        self.retry_after = retry_after


class Unanswered(WalletError):
    """No response: the request may or may not have been executed."""


def parse_base_url(text):
    try:
        url = urlsplit(text)
        if url.scheme in ("http", "https") and url.hostname and url.port != 0 and url.path in ("", "/"):
            return url
    except ValueError:  # The port is not a number.
        pass
    raise WalletError(f"The base URL must look like http://127.0.0.1:8080, not {text!r}: correct it.")


def canonical_message(method, path, timestamp, nonce, body_hash):
    """Section 5.2: five components joined by LF, without one at the end. The path has no query string."""
    return "\n".join([method.upper(), path, timestamp, nonce, body_hash])


def sign(secret, message):
    digest = hmac.new(secret.encode(), message.encode(), hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


class WalletClient:
    """Makes calls signed with one API key. Amounts and balances are decimal strings, never floats."""

    # Not executed, or the outcome is unknown. Either way, a retry with the same bizId is safe.
    RETRYABLE_CODES = {"S002", "S003", "S029"}

    def __init__(self, base_url, api_key, api_secret, timeout=10.0, locale="en-US"):
        self._url = parse_base_url(base_url)
        self._api_key = api_key
        self._api_secret = api_secret
        self._timeout = timeout
        self._locale = locale

    def list_wallets(self, **query):
        """Yields all wallets, oldest first. Filters are keywords: currency="USD", status="ACTIVE"."""
        page = 0
        while True:
            data = self.get("/api/v1/wallets", {"sort": "createdAt,asc", "size": 100, **query, "page": page})
            yield from data["content"]
            page += 1
            if page >= data["page"]["totalPages"]:
                return

    def balance(self, wallet_id):
        return self.get(f"/api/v1/wallets/{quote(wallet_id, safe='')}/balance")

    def get_order(self, biz_id):
        """Returns a transfer order, by its bizId or its transferId."""
        return self.get(f"/api/v1/transfer/query/orders/{quote(biz_id, safe='')}")

    def create_transfer(self, source, target, amount, currency, biz_id=None, attempts=5):
        """Creates a transfer, and retries it until the outcome is known.

        The money moves once: the service makes one transfer for each bizId, and answers a retry with the same
        order. Each attempt has a new signature, because a nonce can be used only once.
        """
        order = {
            "sourceWalletId": source,
            "targetWalletId": target,
            "amount": amount,
            "currency": currency,
            "bizId": biz_id or str(uuid.uuid4()),
        }
        for attempt in range(1, attempts + 1):
            try:
                return self.post("/api/v1/transfer/command/create", order)
            except ApiError as error:
                if error.code not in self.RETRYABLE_CODES or attempt == attempts:
                    raise
                time.sleep(error.retry_after or 0.1 * 2**attempt)
            except Unanswered as error:
                if attempt == attempts:
                    raise Unanswered(f"{error} The outcome of {order['bizId']} is unknown: retry with it.") from error
                time.sleep(0.1 * 2**attempt)

    def get(self, path, query=None):
        return self._call("GET", path, query=query)

    def post(self, path, value):
        # Serialized once: the bytes that are hashed are the bytes that are sent.
        return self._call("POST", path, body=json.dumps(value, ensure_ascii=False).encode())

    def _call(self, method, path, query=None, body=b""):
        target = f"{path}?{urlencode(query)}" if query else path
        status, retry_after, text = self._send(method, target, body, self._headers(method, path, body))
        try:
            envelope = json.loads(text)
            success, code, message = envelope["success"], envelope["code"], envelope["message"]
        except (ValueError, KeyError, TypeError):
            raise WalletError(
                f"The response of {self._url.geturl()} (HTTP {status}) is not one of the wallet service: check the URL."
            ) from None
        if not success:
            raise ApiError(status, code, message, envelope.get("detail"), retry_after)
        return envelope["data"]

    def _headers(self, method, path, body):
        timestamp = str(int(time.time()))
        nonce = str(uuid.uuid4())
        message = canonical_message(method, path, timestamp, nonce, hashlib.sha256(body).hexdigest())
        headers = {
            "X-Api-Key": self._api_key,
            "X-Timestamp": timestamp,
            "X-Nonce": nonce,
            "X-Signature": sign(self._api_secret, message),
            "X-LOCALE": self._locale,
        }
        if body:
            headers["Content-Type"] = "application/json"
        return headers

    def _send(self, method, target, body, headers):
        connect = http.client.HTTPSConnection if self._url.scheme == "https" else http.client.HTTPConnection
        connection = connect(self._url.hostname, self._url.port, timeout=self._timeout)
        try:
            connection.request(method, target, body=body or None, headers=headers)
            response = connection.getresponse()
            retry_after = response.getheader("Retry-After", "")
            return response.status, int(retry_after) if retry_after.isdigit() else None, response.read()
        except (OSError, http.client.HTTPException) as error:
            raise Unanswered(f"{self._url.geturl()} did not answer ({error}).") from error
        finally:
            connection.close()


def find_access(demo_file):
    """Returns base URL, key and secret: from the demo file if there is one, else from the environment."""
    if demo_file:
        try:
            with open(demo_file, encoding="utf-8") as file:
                demo = json.load(file)
            return demo["baseUrl"], demo["apiKey"], demo["apiSecret"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise WalletError(
                f"Cannot read a demo from {demo_file} ({error}): start the service with npm start."
            ) from None
    missing = [name for name in ("BASE_URL", "API_KEY", "API_SECRET") if not os.environ.get(name)]
    if missing:
        raise WalletError(f"{', '.join(missing)} is not set: set it, or add --demo with the demo.json of npm start.")
    return os.environ["BASE_URL"], os.environ["API_KEY"], os.environ["API_SECRET"]


def first_pair(wallets):
    """Returns the first two wallets with the same currency."""
    first_by_currency = {}
    for wallet in wallets:
        first = first_by_currency.setdefault(wallet["currency"], wallet)
        if first is not wallet:
            return first, wallet
    raise WalletError("No two active wallets have the same currency: create another wallet.")


def one_unit(balance):
    """Returns 1 with the decimals of the balance: "1.00" for "899.50", "1" for "900"."""
    return str(Decimal(1).quantize(Decimal(balance)))


def main():
    parser = argparse.ArgumentParser(description="Transfers 1.00 between the first two wallets with the same currency.")
    parser.add_argument(
        "--demo", metavar="FILE", help="demo.json of npm start (default: BASE_URL, API_KEY and API_SECRET)"
    )
    client = WalletClient(*find_access(parser.parse_args().demo))

    source, target = first_pair(client.list_wallets(status="ACTIVE"))
    currency = source["currency"]

    def print_balances(when):
        for wallet in (source, target):
            balance = client.balance(wallet["walletId"])["balance"]
            print(f"{when}  {wallet['walletId']}  {balance} {currency}  {wallet['name']}")

    print_balances("before")
    created = client.create_transfer(source["walletId"], target["walletId"], one_unit(source["balance"]), currency)
    order = client.get_order(created["bizId"])
    print(f"moved   {order['amount']} {order['currency']} as {order['transferId']}, {order['status']}")
    print_balances("after ")


if __name__ == "__main__":
    try:
        main()
    except WalletError as error:
        sys.exit(str(error))
