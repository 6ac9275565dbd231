"""The vectors of test/vectors, which openssl signs."""

import base64
import json
import unittest
from pathlib import Path

from workspace_wallet import body_hash, canonical_message, sign, signed_headers

VECTORS = json.loads((Path(__file__).parents[3] / "test/vectors/signing.json").read_text())


class Signing(unittest.TestCase):
    def test_body_hash_canonical_message_and_signature_each_on_its_own(self) -> None:
        self.assertGreater(len(VECTORS), 5)
        for vector in VECTORS:
            with self.subTest(vector["name"]):
                self.assertEqual(body_hash(base64.b64decode(vector["bodyBase64"])), vector["bodyHash"])
                message = canonical_message(
                    method=vector["method"],
                    path=vector["target"].partition("?")[0],
                    timestamp=vector["timestamp"],
                    nonce=vector["nonce"],
                    body_hash=vector["bodyHash"],
                )
                self.assertEqual(message, vector["canonicalMessage"])
                self.assertEqual(sign(vector["secret"], message), vector["signature"])

    def test_the_headers_of_the_request(self) -> None:
        for vector in VECTORS:
            with self.subTest(vector["name"]):
                headers = signed_headers(
                    "ak_1",
                    vector["secret"],
                    method=vector["method"],
                    target=vector["target"],
                    body=base64.b64decode(vector["bodyBase64"]),
                    timestamp=vector["timestamp"],
                    nonce=vector["nonce"],
                )
                expected = {"X-Api-Key": "ak_1", "X-Timestamp": vector["timestamp"], "X-Nonce": vector["nonce"]}
                self.assertEqual(headers, {**expected, "X-Signature": vector["signature"]})

    def test_each_request_has_a_new_nonce_and_the_current_time(self) -> None:
        headers = [signed_headers("ak_1", "secret", method="GET", target="/") for _ in range(3)]
        self.assertEqual(len({each["X-Nonce"] for each in headers}), 3)
        for each in headers:
            self.assertRegex(each["X-Timestamp"], "^[0-9]{10}$")


if __name__ == "__main__":
    unittest.main()
