"""A client whose requests get scripted responses, and whose pauses end at once."""

import json
import unittest
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from workspace_wallet import ConnectError, HttpResponse, WalletClient

SERVER_TIME = 1_800_000_000_000
SECRET = "the-secret"


def failure(code: str, status: int, headers: Mapping[str, str] | None = None) -> HttpResponse:
    envelope = {"version": "1.3.0", "timestamp": SERVER_TIME, "success": False, "code": code, "data": None}
    body = {**envelope, "message": f"NAME_OF_{code}", "detail": "A sentence."}
    return HttpResponse(status, {"x-request-id": "req_1", **(headers or {})}, json.dumps(body).encode())


def success(data: object = None) -> HttpResponse:
    envelope = {"version": "1.3.0", "timestamp": SERVER_TIME, "success": True, "code": "2000", "message": "SUCCESS"}
    return HttpResponse(200, {"x-request-id": "req_2"}, json.dumps({**envelope, "data": data}).encode())


def page(*content: object, total_pages: int = 1) -> HttpResponse:
    return success({"content": content, "page": {"totalPages": total_pages}})


@dataclass
class Sent:
    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None


@dataclass
class Script:
    """Responds with these replies, with the last one again and again."""

    replies: list[HttpResponse | Exception]
    sent: list[Sent] = field(default_factory=list[Sent])

    def __call__(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, timeout: float
    ) -> HttpResponse:
        self.sent.append(Sent(method, url, headers, body))
        reply = self.replies[min(len(self.sent), len(self.replies)) - 1]
        if isinstance(reply, Exception):
            raise reply
        return reply


REFUSED = ConnectError("[Errno 111] Connection refused")
RESET = ConnectionResetError("[Errno 104] Connection reset by peer")


class ScriptedTest(unittest.TestCase):
    def setUp(self) -> None:
        self.pauses: list[float] = []
        self.now = SERVER_TIME / 1000
        for target, replacement in (
            ("workspace_wallet.request.time.sleep", self.pauses.append),
            ("workspace_wallet.request.time.time", lambda: self.now),
        ):
            patch = mock.patch(target, replacement)
            patch.start()
            self.addCleanup(patch.stop)

    def client_of(self, *replies: HttpResponse | Exception, **options: Any) -> tuple[WalletClient, list[Sent]]:
        script = Script(list(replies))
        options = {"base_url": "https://wallet.example", "api_key": "ak_1", "api_secret": SECRET, **options}
        return WalletClient(transport=script, **options), script.sent
