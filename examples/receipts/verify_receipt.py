"""Verifies a receipt offline: python3 verify_receipt.py JWKS_FILE < receipt.txt

Prints what the receipt says, as JSON. Exits with 1 if it is not genuine. Needs only the standard library and openssl 3.
"""

import base64
import json
import os
import subprocess
import sys
import tempfile

# DER of an Ed25519 public key, before its 32 bytes (RFC 8410).
SPKI_HEAD = bytes.fromhex("302a300506032b6570032100")


class NotGenuine(Exception):
    """The receipt was not signed with one of the keys, or was changed."""


def decode(text: str) -> bytes:
    """Decodes base64url without padding, in its only form."""
    try:
        decoded = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError as error:
        raise NotGenuine("a part is not base64url") from error
    if base64.urlsafe_b64encode(decoded).decode().rstrip("=") != text:
        raise NotGenuine("a part is not base64url")
    return decoded


def decode_json(text: str) -> dict:
    try:
        value = json.loads(decode(text))
    except ValueError as error:
        raise NotGenuine("a part is not JSON") from error
    if not isinstance(value, dict):
        raise NotGenuine("a part is not a JSON object")
    return value


def verify_receipt(receipt: str, jwks: dict) -> dict:
    """Returns the claims of a genuine receipt."""
    parts = receipt.strip().split(".")
    if len(parts) != 3:
        raise NotGenuine("it does not have three parts")
    header = decode_json(parts[0])
    if header.get("typ") != "wallet-receipt+jwt" or header.get("alg") != "EdDSA":
        raise NotGenuine("it is not a receipt")
    key = next((key for key in jwks["keys"] if key["kid"] == header.get("kid")), None)
    if key is None:
        raise NotGenuine("its key is unknown")
    if not is_signed(f"{parts[0]}.{parts[1]}", decode(parts[2]), decode(key["x"])):
        raise NotGenuine("its signature is wrong")
    return decode_json(parts[1])


def is_signed(text: str, signature: bytes, public_key: bytes) -> bool:
    """Ed25519, by openssl: the standard library has none."""
    if len(signature) != 64:
        return False
    with tempfile.TemporaryDirectory() as directory:
        paths = {name: os.path.join(directory, name) for name in ("text", "signature", "key")}
        contents = {"text": text.encode(), "signature": signature, "key": SPKI_HEAD + public_key}
        for name, content in contents.items():
            with open(paths[name], "wb") as file:
                file.write(content)
        command = ["openssl", "pkeyutl", "-verify", "-rawin", "-pubin", "-keyform", "DER", "-inkey", paths["key"]]
        command += ["-sigfile", paths["signature"], "-in", paths["text"]]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as keys:
        try:
            print(json.dumps(verify_receipt(sys.stdin.read(), json.load(keys)), indent=2))
        except NotGenuine as error:
            sys.exit(f"The receipt is not genuine: {error}.")
