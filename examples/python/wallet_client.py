#!/usr/bin/env python3
"""A client of the wallet service: Python 3.9 or later, the standard library only.

Run as a program, it moves 1.00 between the first two wallets of one currency:

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
    """Anything that keeps a call from being answered with success."""


class ApiError(WalletError):
    """The service has answered, and refuses. `code` is for programs, the sentence for people."""

    def __init__(self, http_status, code, message, detail=None, retry_after=None):
        super().__init__(f"{code} {message} (HTTP {http_status}){': ' + detail if detail else ''}")
        self.http_status = http_status
        self.code = code
        self.message = message
        self.retry_after = retry_after


class Unanswered(WalletError):
    """No answer has come: the request may have been carried out, or not."""


def parse_base_url(text):
    try:
        url = urlsplit(text)
        if url.scheme in ("http", "https") and url.hostname and url.port != 0 and url.path in ("", "/"):
            return url
    except ValueError:  # a port that is no number
        pass
    raise WalletError(f"The base URL has to be like http://127.0.0.1:8080, not {text!r}.")


def canonical_message(method, path, timestamp, nonce, body_hash):
    """Section 5.2: five components joined by LF, none at the end. The path is without the query string."""
    return "\n".join([method.upper(), path, timestamp, nonce, body_hash])


def sign(secret, message):
    digest = hmac.new(secret.encode(), message.encode(), hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


class WalletClient:
    """Signed calls under one API key. Amounts and balances are decimal strings, never floats."""

    # Not done, or done or not: either way it is safe to ask again under the same bizId.
    RETRYABLE_CODES = {"S002", "S003", "S029"}

    def __init__(self, base_url, api_key, api_secret, timeout=10.0, locale="en-US"):
        self._url = parse_base_url(base_url)
        self._api_key = api_key
        self._api_secret = api_secret
        self._timeout = timeout
        self._locale = locale

    def list_wallets(self, **query):
        """All wallets, page by page, oldest first. Filters as keywords: currency="USD", status="ACTIVE"."""
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
        """One transfer order, by its bizId or its transferId."""
        return self.get(f"/api/v1/transfer/query/orders/{quote(biz_id, safe='')}")

    def create_transfer(self, source, target, amount, currency, biz_id=None, attempts=5):
        """Moves money once, however often the request has to be sent.

        The bizId makes it so: under one bizId the service carries out one transfer, and answers every
        repetition with that same order. Each attempt is signed anew, because a nonce works once.
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
                    raise Unanswered(f"{error} Whether {order['bizId']} was carried out is not known.") from error
                time.sleep(0.1 * 2**attempt)

    def get(self, path, query=None):
        return self._call("GET", path, query=query)

    def post(self, path, value):
        # Serialised once: these very bytes are hashed, and these very bytes are sent.
        return self._call("POST", path, body=json.dumps(value, ensure_ascii=False).encode())

    def _call(self, method, path, query=None, body=b""):
        target = f"{path}?{urlencode(query)}" if query else path
        status, retry_after, text = self._send(method, target, body, self._headers(method, path, body))
        try:
            envelope = json.loads(text)
            success, code, message = envelope["success"], envelope["code"], envelope["message"]
        except (ValueError, KeyError, TypeError):
            raise WalletError(
                f"{self._url.geturl()} does not answer like the wallet service (HTTP {status})."
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
            raise Unanswered(f"No answer came from {self._url.geturl()} ({error}).") from error
        finally:
            connection.close()


def find_access(demo_file):
    """Base URL, key and secret: from the demo's file when one is named, else from the environment."""
    if demo_file:
        try:
            with open(demo_file, encoding="utf-8") as file:
                demo = json.load(file)
            return demo["baseUrl"], demo["apiKey"], demo["apiSecret"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise WalletError(
                f"{demo_file} does not hold a demo ({error}): start the service with npm start."
            ) from None
    missing = [name for name in ("BASE_URL", "API_KEY", "API_SECRET") if not os.environ.get(name)]
    if missing:
        raise WalletError(f"{', '.join(missing)} is not set: set it, or name the demo's file with --demo.")
    return os.environ["BASE_URL"], os.environ["API_KEY"], os.environ["API_SECRET"]


def first_pair(wallets):
    """The first two active wallets of one currency."""
    first_by_currency = {}
    for wallet in wallets:
        first = first_by_currency.setdefault(wallet["currency"], wallet)
        if first is not wallet:
            return first, wallet
    raise WalletError("No two active wallets have one currency: create another one.")


def one_unit(balance):
    """1 with as many decimals as the balance: "1.00" for "899.50", "1" for "900"."""
    return str(Decimal(1).quantize(Decimal(balance)))


def main():
    parser = argparse.ArgumentParser(description="Moves 1.00 between the first two wallets of one currency.")
    parser.add_argument("--demo", metavar="FILE", help="demo.json of npm start; else BASE_URL, API_KEY and API_SECRET")
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
