#!/usr/bin/env python3
"""Keeps a copy of a workspace from its event log. Needs Python 3.9 and the standard library only.

    python3 events_copy.py --demo .data/demo.json --file copy.db follow
    BASE_URL=http://127.0.0.1:8080 API_KEY=ak_... API_SECRET=... python3 events_copy.py --file copy.db check

follow   reads events as they come, until it is stopped
update   reads the events up to now
rebuild  the same, from the beginning
check    the same as update, then compares the copy with the API

The copy is an SQLite file. Every page of events is written in one transaction with the cursor, so that each event has its
effect once, whenever the program is killed.
"""

import argparse
import base64
import hashlib
import hmac
import http.client
import json
import os
import sqlite3
import sys
import time
import uuid
from decimal import Context, Decimal, setcontext
from urllib.parse import urlsplit

# Amounts have up to 38 digits.
setcontext(Context(prec=100))

PAGE_SIZE = 500
PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 5
CHECK_ATTEMPTS = 20


class CopyError(Exception):
    """A sentence for people."""


class ApiError(CopyError):
    def __init__(self, status, code, message):
        super().__init__(f"{code} {message} (HTTP {status}).")
        self.code = code


class Client:
    """Signed GET requests (section 5 of the specification) on one connection."""

    # Nothing was read: the service is busy, restarting, or limits the rate.
    RETRYABLE_CODES = {"S002", "S003", "S029"}

    def __init__(self, base_url, api_key, api_secret):
        self._url = urlsplit(base_url)
        self._api_key = api_key
        self._api_secret = api_secret
        self._connection = None

    def get(self, path, query=""):
        """Returns `data`, and the time of the service. Waits until the service answers."""
        pause = PAUSE_SECONDS
        while True:
            try:
                return self._get(path, query)
            except ApiError as error:
                if error.code not in self.RETRYABLE_CODES:
                    raise
                print(f"The service answered {error} Trying again.", file=sys.stderr)
            except (OSError, http.client.HTTPException, ValueError) as error:
                self._disconnect()
                print(f"{self._url.geturl()} did not answer ({error!r}). Trying again.", file=sys.stderr)
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    def list(self, path, query):
        """All entries of a list, oldest first, so that new ones do not shift the pages."""
        entries = []
        page = 0
        while True:
            data, _ = self.get(path, f"{query}&sort=createdAt,asc&size=100&page={page}")
            entries += data["content"]
            page += 1
            if page >= data["page"]["totalPages"]:
                return entries

    def _get(self, path, query):
        if self._connection is None:
            secure = self._url.scheme == "https"
            connect = http.client.HTTPSConnection if secure else http.client.HTTPConnection
            self._connection = connect(self._url.hostname, self._url.port, timeout=15)
        # The query is not part of the signature.
        self._connection.request("GET", f"{path}?{query}" if query else path, headers=self._headers(path))
        response = self._connection.getresponse()
        envelope = json.loads(response.read())
        if not envelope["success"]:
            raise ApiError(response.status, envelope["code"], envelope["message"])
        return envelope["data"], envelope["timestamp"]

    def _headers(self, path):
        timestamp = str(int(time.time()))
        nonce = str(uuid.uuid4())
        body_hash = hashlib.sha256(b"").hexdigest()
        message = "\n".join(["GET", path, timestamp, nonce, body_hash])
        digest = hmac.new(self._api_secret.encode(), message.encode(), hashlib.sha256).digest()
        return {
            "X-Api-Key": self._api_key,
            "X-Timestamp": timestamp,
            "X-Nonce": nonce,
            "X-Signature": base64.b64encode(digest).decode(),
        }

    def _disconnect(self):
        if self._connection is not None:
            self._connection.close()
        self._connection = None


SCHEMA = """
    create table if not exists cursor (last integer not null, last_event_id text);
    create table if not exists wallet (
        wallet_id text primary key, biz_id text, currency text not null, status text not null,
        balance text not null, sequence integer not null);
    create table if not exists hold (
        hold_id text primary key, wallet_id text not null, status text not null, record text not null);
    create index if not exists open_hold on hold (wallet_id) where status = 'OPEN';
    create table if not exists transfer_order (transfer_id text primary key, record text not null);
"""


class Copy:
    """The wallets, holds and orders of a workspace, as of the position `last` of its event log."""

    def __init__(self, file):
        self._db = sqlite3.connect(file, isolation_level=None)
        self._db.executescript(SCHEMA)

    def cursor(self):
        """The position of the last event in the copy, and its ID: 0 and None for an empty copy."""
        return self._db.execute("select last, last_event_id from cursor").fetchone() or (0, None)

    def clear(self):
        with self._transaction():
            for table in ("cursor", "wallet", "hold", "transfer_order"):
                self._db.execute(f"delete from {table}")

    def add(self, page):
        """Applies a page of events, with the cursor, all or nothing."""
        with self._transaction():
            last, _ = self.cursor()
            for event in page["content"]:
                last += 1
                if event["position"] != last:
                    raise CopyError(f"Position {event['position']} follows {last - 1}: the log has a gap or a repeat.")
                self._apply(event)
            if page["last"] != last:
                raise CopyError(f"The page ends at {page['last']}, and its last event is {last}.")
            self._db.execute("delete from cursor")
            self._db.execute("insert into cursor values (?, ?)", (last, page["lastEventId"]))

    def _apply(self, event):
        kind, data = event["type"], event["data"]
        if kind == "transfer.completed":
            self._add_order(data)
        if kind in ("transfer.completed", "wallet.deposited", "wallet.withdrawn"):
            self._move(event, data.get("transfer") or data["funding"])
        elif kind.startswith("hold."):
            self._set_hold(data["hold"])
        elif kind == "wallet.created":
            row = (data["walletId"], data["bizId"], data["currency"], data["status"], "0", 0)
            self._db.execute("insert into wallet values (?, ?, ?, ?, ?, ?)", row)
        elif kind in ("wallet.frozen", "wallet.unfrozen", "wallet.closed"):
            self._db.execute("update wallet set status = ? where wallet_id = ?", (data["status"], data["walletId"]))
        else:
            raise CopyError(f"The type {kind} is unknown: update this program.")

    def _move(self, event, record):
        """New balances, and what is left of the hold that the money came from."""
        data = event["data"]
        for side in data["balances"].values():
            values = (side["balanceAfter"], side["sequence"], side["walletId"], side["sequence"] - 1)
            update = "update wallet set balance = ?, sequence = ? where wallet_id = ? and sequence = ?"
            if self._db.execute(update, values).rowcount != 1:
                raise CopyError(f"Position {event['position']} does not continue the flows of {side['walletId']}.")
        if record["holdId"] is not None:
            hold = self.hold(record["holdId"])
            hold["capturedAmount"] = text_of(Decimal(hold["capturedAmount"]) + Decimal(record["amount"]))
            hold["remainingAmount"] = data["holdRemaining"]
            hold["status"] = "CAPTURED" if Decimal(data["holdRemaining"]) == 0 else "OPEN"
            hold["updatedAt"] = event["timestamp"]
            self._set_hold(hold)

    def _add_order(self, data):
        order = data["transfer"]
        balance = Decimal(data["balances"]["source"]["balanceAfter"])
        # Zero, with the decimals of the currency.
        order["reversedAmount"] = text_of(balance - balance)
        self._set_order(order)
        if order["reversesTransferId"] is not None:
            original = self.order(order["reversesTransferId"])
            reversed_amount = Decimal(original["reversedAmount"]) + Decimal(order["amount"])
            self._set_order({**original, "reversedAmount": text_of(reversed_amount)})

    def _set_order(self, order):
        row = (order["transferId"], json.dumps(order))
        self._db.execute("insert or replace into transfer_order values (?, ?)", row)

    def _set_hold(self, hold):
        row = (hold["holdId"], hold["walletId"], hold["status"], json.dumps(hold))
        self._db.execute("insert or replace into hold values (?, ?, ?, ?)", row)

    def order(self, transfer_id):
        return self._record("select record from transfer_order where transfer_id = ?", transfer_id)

    def hold(self, hold_id):
        return self._record("select record from hold where hold_id = ?", hold_id)

    def orders(self):
        return self._records("select record from transfer_order")

    def holds(self):
        return self._records("select record from hold")

    def wallets(self):
        """All wallets, with what their open holds reserve."""
        columns = ("walletId", "bizId", "currency", "status", "balance", "sequence")
        wallets = [dict(zip(columns, row)) for row in self._db.execute("select * from wallet")]
        for wallet in wallets:
            query = "select record from hold where wallet_id = ? and status = 'OPEN'"
            holds = self._records(query, wallet["walletId"])
            wallet["held"] = sum(Decimal(hold["remainingAmount"]) for hold in holds)
        return wallets

    def next_expiry(self):
        """When the next open hold expires; None without any."""
        expiries = [hold["expiresAt"] for hold in self._records("select record from hold where status = 'OPEN'")]
        return min(expiries, default=None)

    def _record(self, query, key):
        records = self._records(query, key)
        if not records:
            raise CopyError(f"{key} is in the log and not in the copy: rebuild it.")
        return records[0]

    def _records(self, query, *values):
        return [json.loads(record) for (record,) in self._db.execute(query, values)]

    def _transaction(self):
        self._db.execute("begin immediate")
        # Commits, or rolls back after an exception.
        return self._db


def text_of(amount):
    return format(amount, "f")


def update(client, copy):
    """Reads all events that the copy does not have. Starts from the beginning if history was replaced."""
    while True:
        last, last_event_id = copy.cursor()
        try:
            page, _ = client.get(f"/api/v1/event/query/events/{last}", f"size={PAGE_SIZE}")
        except ApiError as error:
            if error.code != "E001":
                raise
            page = None
        if page is None or page["afterEventId"] != last_event_id:
            print("The service was restored from an earlier copy: starting from the beginning.", file=sys.stderr)
            copy.clear()
            continue
        if page["content"]:
            copy.add(page)
        if not page["more"]:
            return


def check(client, copy):
    """Compares the copy with the API. Returns the differences, one sentence each."""
    for _ in range(CHECK_ATTEMPTS):
        update(client, copy)
        before = copy.cursor()
        differences, asked_at = compare(client, copy)
        update(client, copy)
        # The API shows a hold as expired at once, and the log a moment later.
        expiry = copy.next_expiry()
        is_still = copy.cursor() == before and (expiry is None or expiry > asked_at)
        if is_still:
            return differences
        time.sleep(1)
    raise CopyError("The workspace changes all the time: check again when less happens.")


def compare(client, copy):
    differences = []

    def expect(what, mine, theirs):
        if mine != theirs:
            differences.append(f"{what} is {mine} in the copy and {theirs} in the service.")

    wallets = {wallet["walletId"]: wallet for wallet in copy.wallets()}
    listed = client.list("/api/v1/wallets", "")
    expect("The set of wallets", sorted(wallets), sorted(wallet["walletId"] for wallet in listed))
    for theirs in listed:
        mine = wallets.get(theirs["walletId"])
        if mine is None:
            continue
        balance, _ = client.get(f"/api/v1/wallets/{theirs['walletId']}/balance")
        for field in ("bizId", "currency", "status"):
            expect(f"{field} of {theirs['walletId']}", mine[field], theirs[field])
        expect(f"sequence of {theirs['walletId']}", mine["sequence"], balance["sequence"])
        available = Decimal(mine["balance"]) - mine["held"]
        for field, amount in (("balance", Decimal(mine["balance"])), ("held", mine["held"]), ("available", available)):
            expect(f"{field} of {theirs['walletId']}", amount, Decimal(balance[field]))
    for name, key, mine, path in (
        ("order", "transferId", copy.orders(), "/api/v1/transfer/query/orders"),
        ("hold", "holdId", copy.holds(), "/api/v1/hold/query/holds"),
    ):
        copied = {record[key]: record for record in mine}
        theirs = {record[key]: record for record in client.list(path, "")}
        for record_id in sorted(copied.keys() | theirs.keys()):
            expect(f"The {name} {record_id}", copied.get(record_id), theirs.get(record_id))
    _, milliseconds = client.get("/api/v1/event/query/events/head")
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(milliseconds // 1000))
    return differences, f"{seconds}.{milliseconds % 1000:03}Z"


def find_access(demo_file):
    """Returns base URL, key and secret: from the demo file if there is one, else from the environment."""
    if demo_file:
        try:
            with open(demo_file, encoding="utf-8") as file:
                demo = json.load(file)
            return demo["baseUrl"], demo["apiKey"], demo["apiSecret"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CopyError(f"Cannot read a demo from {demo_file} ({error}): start the service with npm start.") from None
    missing = [name for name in ("BASE_URL", "API_KEY", "API_SECRET") if not os.environ.get(name)]
    if missing:
        raise CopyError(f"{', '.join(missing)} is not set: set it, or add --demo with the demo.json of npm start.")
    return os.environ["BASE_URL"], os.environ["API_KEY"], os.environ["API_SECRET"]


def main():
    parser = argparse.ArgumentParser(description="Keeps a copy of a workspace from its event log.")
    parser.add_argument("--demo", metavar="FILE", help="demo.json of npm start (default: BASE_URL, API_KEY, API_SECRET)")
    parser.add_argument("--file", metavar="FILE", required=True, help="the SQLite file of the copy")
    parser.add_argument("command", choices=("follow", "update", "rebuild", "check"))
    arguments = parser.parse_args()
    client = Client(*find_access(arguments.demo))
    copy = Copy(arguments.file)
    if arguments.command == "rebuild":
        copy.clear()
    if arguments.command == "check":
        differences = check(client, copy)
        if differences:
            raise CopyError("\n".join(differences[:10]))
    update(client, copy)
    while arguments.command == "follow":
        time.sleep(PAUSE_SECONDS)
        update(client, copy)
    counts = f"{len(copy.wallets())} wallets, {len(copy.orders())} orders, {len(copy.holds())} holds"
    print(f"position {copy.cursor()[0]}: {counts}{', as in the service' if arguments.command == 'check' else ''}")


if __name__ == "__main__":
    try:
        main()
    except CopyError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        pass
