"""verify_webhook. test/python-client.test.ts has it verify what the published library of Standard Webhooks signs."""

import base64
import hashlib
import hmac
import json
import os
import unittest
from typing import Any

from workspace_wallet import WebhookVerificationError, verify_webhook

NOW = 1_800_000_000.0
EVENT = {"eventId": "evt_1", "position": 7, "type": "hold.released", "data": {"remark": "Grüße, 银行"}}
BODY = json.dumps(EVENT, ensure_ascii=False)


def new_secret() -> str:
    return f"whsec_{base64.b64encode(os.urandom(32)).decode()}"


SECRET = new_secret()


def signature_of(body: str = BODY, *, by: str = SECRET, at: int = int(NOW)) -> str:
    key = base64.b64decode(by.removeprefix("whsec_"))
    digest = hmac.new(key, f"evt_1.{at}.{body}".encode(), hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def headers_of(**changes: str) -> dict[str, str]:
    headers = {"id": "evt_1", "timestamp": str(int(NOW)), "signature": signature_of(), **changes}
    return {f"Webhook-{name.title()}": value for name, value in headers.items()}


def verify(**changes: Any) -> object:
    delivery: dict[str, Any] = {"secret": SECRET, "headers": headers_of(), "body": BODY, "now": NOW}
    return verify_webhook(**{**delivery, **changes})


class Deliveries(unittest.TestCase):
    def expect_fault(self, fault: str, **changes: Any) -> None:
        with self.assertRaises(WebhookVerificationError) as raised:
            verify(**changes)
        self.assertEqual(raised.exception.fault, fault)
        self.assertRegex(str(raised.exception), "^(The|No) .*[.]$")

    def test_a_genuine_delivery_returns_its_event(self) -> None:
        self.assertEqual(verify(), EVENT)
        self.assertEqual(verify(body=BODY.encode()), EVENT)

    def test_during_a_rotation_either_secret_and_either_signature_is_enough(self) -> None:
        older, newer = new_secret(), new_secret()
        both = f"{signature_of(by=newer)} {signature_of(by=older)}"
        for known in (older, newer, [older, newer], [new_secret(), newer]):
            self.assertEqual(verify(secret=known, headers=headers_of(signature=both)), EVENT)
        self.expect_fault("SIGNATURE_INVALID", secret=older, headers=headers_of(signature=signature_of(by=newer)))

    def test_what_was_changed_is_refused(self) -> None:
        self.expect_fault("SIGNATURE_INVALID", body=BODY.replace("7", "8"))
        self.expect_fault("SIGNATURE_INVALID", headers=headers_of(id="evt_2"))
        self.expect_fault("SIGNATURE_INVALID", headers=headers_of(timestamp=str(int(NOW) + 1)))
        self.expect_fault("SIGNATURE_INVALID", secret=new_secret())

    def test_times_outside_of_the_tolerance_are_refused(self) -> None:
        for age, fault in ((301, "TIMESTAMP_TOO_OLD"), (-301, "TIMESTAMP_TOO_NEW")):
            self.expect_fault(fault, now=NOW + age)
            self.assertEqual(verify(now=NOW + age, tolerance_seconds=301), EVENT)

    def test_headers_that_are_missing_repeated_or_malformed_are_refused(self) -> None:
        class Repeated:
            def items(self) -> list[tuple[str, str]]:
                return [*headers_of().items(), ("webhook-id", "evt_1")]

        self.expect_fault("HEADER_INVALID", headers=Repeated())
        for name in ("id", "timestamp", "signature"):
            self.expect_fault("HEADER_MISSING", headers=headers_of(**{name: ""}))
        for timestamp in ("now", "1e9", "-1", "1800000000.5", "9" * 16, "١٨٠٠٠٠٠٠٠٠"):
            self.expect_fault("HEADER_INVALID", headers=headers_of(timestamp=timestamp))
        for signature in ("v1", "v1,", "v1,!", "v2,AAAA", ",", "x" * 9):
            self.expect_fault("HEADER_INVALID", headers=headers_of(signature=signature))
        self.expect_fault(
            "SIGNATURE_INVALID", headers=headers_of(signature="v1,AAAA " * 16 + signature_of())
        )

    def test_a_body_that_is_not_the_event_is_refused(self) -> None:
        for body in ("", "null", "7", "[]", "{}", '{"eventId":"evt_2"}', "[" * 100_000):
            self.expect_fault("BODY_INVALID", body=body, headers=headers_of(signature=signature_of(body)))

    def test_mistakes_of_the_program_are_errors_without_the_secret(self) -> None:
        secrets: list[Any] = ["", "the-secret", "whsec_", "whsec_!", [], None]
        for secret in secrets:
            with self.assertRaises((TypeError, ValueError)) as raised:
                verify(secret=secret)
            self.assertNotIn("the-secret", str(raised.exception))
        with self.assertRaises(TypeError):
            verify(body=EVENT)


if __name__ == "__main__":
    unittest.main()
