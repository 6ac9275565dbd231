"""The vectors of test/vectors, which openssl signs. Needs the package cryptography."""

import json
import unittest
from pathlib import Path

from workspace_wallet import ReceiptError, ReceiptKeys, verify_receipt

FILE = json.loads((Path(__file__).parents[3] / "test/vectors/receipts.json").read_text())
VECTORS, FORGERIES = FILE["vectors"], FILE["forgeries"]
KEYS: ReceiptKeys = {"keys": [{"kid": each["kid"], "x": each["x"]} for each in VECTORS]}


class Receipts(unittest.TestCase):
    def test_a_genuine_receipt_says_what_was_signed(self) -> None:
        for vector in VECTORS:
            with self.subTest(vector["name"]):
                self.assertEqual(verify_receipt(f" {vector['receipt']}\r\n", KEYS), json.loads(vector["payload"]))

    def test_forgeries_are_refused(self) -> None:
        self.assertGreater(len(FORGERIES), 5)
        for forgery in FORGERIES:
            with self.subTest(forgery["name"]), self.assertRaises(ReceiptError):
                verify_receipt(forgery["receipt"], KEYS)

    def test_a_receipt_with_any_other_character_is_refused(self) -> None:
        receipt: str = VECTORS[0]["receipt"]
        for at, character in enumerate(receipt):
            with self.subTest(at), self.assertRaises(ReceiptError):
                verify_receipt(receipt[:at] + ("B" if character == "A" else "A") + receipt[at + 1 :], KEYS)

    def test_keys_that_are_older_than_the_receipt_are_named(self) -> None:
        with self.assertRaisesRegex(ReceiptError, f"The key {VECTORS[0]['kid']} is unknown."):
            verify_receipt(VECTORS[0]["receipt"], {"keys": []})


if __name__ == "__main__":
    unittest.main()
