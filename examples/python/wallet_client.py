#!/usr/bin/env python3
"""A client of the wallet service. Needs Python 3.9 and the standard library only.

Run as a program, it transfers 1.00 between the first two wallets with the same currency:

    python3 wallet_client.py --demo .data/demo.json
    BASE_URL=http://127.0.0.1:8080 API_KEY=ak_... API_SECRET=... python3 wallet_client.py
"""

import base64
import hashlib
import hmac
import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid
from urllib.parse import quote, urlencode


class WalletError(Exception):
    """A failed call. `code` is for programs, the text is for people. Without an answer, `code` is None."""

    def __init__(self, text, status=None, code=None, message=None, detail=None, request_id=None, retry_after=None):
        super().__init__(text)
        self.status, self.code, self.message, self.detail = status, code, message, detail
        self.request_id, self.retry_after = request_id, retry_after

    def is_retryable(self, is_repeatable):
        """Whether to send the request again. If it may have been executed, `is_repeatable` decides."""
        if (self.retry_after or 0) > 60:
            return False
        if self.code in ("GA2013", "S002") or self.status == 429:
            return True
        return is_repeatable and (self.code is None or self.status >= 500)


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would send the signed request to another server."""

    def redirect_request(self, *_):
        return None


def sign(secret, method, path, timestamp, nonce, body):
    """Returns X-Signature (section 5.2). `path` is the path as sent, without the query string; `body` is bytes."""
    body_hash = hashlib.sha256(body).hexdigest()
    message = "\n".join([method.upper(), path, timestamp, nonce, body_hash])
    return base64.b64encode(hmac.digest(secret.encode(), message.encode(), "sha256")).decode()


class WalletClient:
    """Makes calls signed with one API key. Amounts and balances are decimal strings, never floats."""

    attempts = 5

    def __init__(self, base_url, api_key, api_secret, timeout=10.0):
        self._base_url, self._api_key, self._api_secret = base_url.rstrip("/"), api_key, api_secret
        self._timeout = timeout
        self._clock_offset = 0.0
        self._opener = urllib.request.build_opener(NoRedirects)

    def call(self, method, path, query=None, body=None):
        """Returns `data` of the response. Retries while the service is unavailable or the answer is lost.

        Give each create a `bizId`: it prevents a second execution. Without one, a lost POST is not retried.
        """
        target = f"{path}?{urlencode(query, doseq=True)}" if query else path
        # Serialized once: the bytes that are hashed are the bytes that are sent.
        payload = b"" if body is None else json.dumps(body, ensure_ascii=False).encode()
        is_repeatable = method == "GET" or b'"bizId":' in payload
        for attempt in range(1, self.attempts + 1):
            try:
                return self._send(method, target, payload)
            except WalletError as error:
                if attempt == self.attempts or not error.is_retryable(is_repeatable):
                    raise
                time.sleep(error.retry_after or 0.1 * 2**attempt)

    def pages(self, path, **query):
        """Yields the records of all pages of a list."""
        page, total_pages = 0, 1
        while page < total_pages:
            data = self.call("GET", path, {**query, "page": page})
            yield from data["content"]
            page, total_pages = page + 1, data["page"]["totalPages"]

    def create_transfer(self, source, target, amount, currency, biz_id=None):
        """Creates a transfer and returns the order. With the same `biz_id`, the money moves once."""
        body = {"sourceWalletId": source, "targetWalletId": target, "amount": amount, "currency": currency}
        return self.call("POST", "/api/v1/transfer/command/create", body={**body, "bizId": biz_id or str(uuid.uuid4())})

    def _send(self, method, target, body):
        """Sends one attempt, with a nonce of its own."""
        timestamp, nonce = str(int(time.time() + self._clock_offset)), str(uuid.uuid4())
        headers = {
            "X-Api-Key": self._api_key,
            "X-Timestamp": timestamp,
            "X-Nonce": nonce,
            "X-Signature": sign(self._api_secret, method, target.split("?")[0], timestamp, nonce, body),
            "X-LOCALE": "en-US",
            "Content-Type": "application/json",
        }
        try:
            request = urllib.request.Request(self._base_url + target, body or None, headers, method=method)
            try:
                response = self._opener.open(request, timeout=self._timeout)
            except urllib.error.HTTPError as error:
                response = error
            with response:
                answer = json.loads(response.read())
                success, code, message = answer["success"], answer["code"], answer["message"]
        except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError) as error:
            unknown = " The outcome is unknown: repeat the call with the same bizId." if method == "POST" else ""
            raise WalletError(f"{self._base_url} did not answer as the wallet service ({error}).{unknown}") from error
        if success:
            return answer["data"]
        if code == "GA2013":  # The clock may be wrong: use that of the service. What is signed for later can be kept until then.
            self._clock_offset = min(answer["timestamp"] / 1000 - time.time(), 86400)
        detail, request_id = answer.get("detail"), response.headers.get("X-Request-Id")
        retry_after = response.headers.get("Retry-After", "")
        raise WalletError(
            f"{code} {message} (HTTP {response.status}, request {request_id}): {detail}",
            response.status, code, message, detail, request_id, int(retry_after) if retry_after.isdecimal() else None,
        )  # fmt: skip


def find_access(demo_file):
    """Returns base URL, key and secret: from the demo file if there is one, else from the environment."""
    if demo_file:
        try:
            with open(demo_file, encoding="utf-8") as file:
                demo = json.load(file)
            return demo["baseUrl"], demo["apiKey"], demo["apiSecret"]
        except (OSError, ValueError, KeyError, TypeError):
            raise WalletError(f"{demo_file} is not a demo.json: start the service with npm start.") from None
    names = ("BASE_URL", "API_KEY", "API_SECRET")
    if not all(os.environ.get(name) for name in names):
        raise WalletError(f"Set {', '.join(names)}, or add --demo with the demo.json of npm start.")
    return [os.environ[name] for name in names]


def first_pair(wallets):
    """Returns the first two wallets with the same currency."""
    first_by_currency = {}
    for wallet in wallets:
        first = first_by_currency.setdefault(wallet["currency"], wallet)
        if first is not wallet:
            return first, wallet
    raise WalletError("No two active wallets have the same currency: create another wallet.")


def run_demo(client):
    wallets = client.pages("/api/v1/wallets", status="ACTIVE", sort="createdAt,asc", size=5)
    source, target = first_pair(wallets)
    currency = source["currency"]

    def print_balances(when):
        for wallet_id in (source["walletId"], target["walletId"]):
            balance = client.call("GET", f"/api/v1/wallets/{wallet_id}/balance")["balance"]
            print(f"{when}  {wallet_id}  {balance} {currency}")

    print_balances("before")
    decimals = source["balance"].partition(".")[2]
    amount = "1." + "0" * len(decimals) if decimals else "1"
    created = client.create_transfer(source["walletId"], target["walletId"], amount, currency)
    order = client.call("GET", f"/api/v1/transfer/query/orders/{quote(created['bizId'], safe='')}")
    print(f"moved   {order['amount']} {currency} as {order['transferId']}, {order['status']}")
    print_balances("after ")


def print_signatures(vectors_file):
    """Prints the signature of each test vector."""
    with open(vectors_file, encoding="utf-8") as file:
        for v in json.load(file):
            path, body = v["target"].split("?")[0], base64.b64decode(v["bodyBase64"])
            print(sign(v["secret"], v["method"], path, v["timestamp"], v["nonce"], body))


if __name__ == "__main__":
    option, file, *_ = [*sys.argv[1:], None, None]
    try:
        if len(sys.argv) > 3 or option not in (None, "--demo", "--vectors") or (option and not file):
            raise WalletError("Use --demo FILE, --vectors FILE or no argument.")
        if option == "--vectors":
            print_signatures(file)
        else:
            run_demo(WalletClient(*find_access(file)))
    except WalletError as error:
        sys.exit(str(error))
