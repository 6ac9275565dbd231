#!/bin/sh
# Prints the vectors of receipts (section 2.12 of the specification) as JSON: `sh make-receipts.sh > receipts.json`.
#
# It shares no code with the service: the shell writes the texts and openssl makes the keys and signs. A vector has a seed, the
# ID of the key, the payload as text, and the receipt. `forgeries` are receipts that must be refused, under the same keys.
set -eu
export LC_ALL=C

for tool in openssl tr od sed; do
  command -v "$tool" >/dev/null 2>&1 || {
    echo "The vectors of receipts are made with openssl, and $tool is missing: install openssl and coreutils." >&2
    exit 1
  }
done

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

base64url() {
  openssl base64 -A | tr '+/' '-_' | tr -d '='
}

bytes_of_hex() {
  printf '%s' "$1" | sed 's/../\\x&/g' | xargs -0 printf '%b'
}

# key SEED_IN_HEX: makes it the key that signs. PKCS #8 is a fixed head (RFC 8410) and the seed.
key() {
  bytes_of_hex "302e020100300506032b657004220420$1" >"$directory/key.der"
  openssl pkey -inform der -in "$directory/key.der" -out "$directory/key.pem"
  seed=$(bytes_of_hex "$1" | openssl base64 -A)
  # The last 32 bytes of the public key are the point.
  x=$(openssl pkey -in "$directory/key.pem" -pubout -outform der | tail -c 32 | base64url)
}

# sign TEXT: the Ed25519 signature in base64url.
sign() {
  printf '%s' "$1" >"$directory/text"
  openssl pkeyutl -sign -rawin -inkey "$directory/key.pem" -in "$directory/text" | base64url
}

header_of() {
  printf '{"alg":"EdDSA","typ":"wallet-receipt+jwt","kid":"%s"}' "$1"
}

# receipt HEADER PAYLOAD
receipt() {
  signed="$(printf '%s' "$1" | base64url).$(printf '%s' "$2" | base64url)"
  printf '%s.%s' "$signed" "$(sign "$signed")"
}

json_text() {
  printf '"%s"' "$(printf '%s' "$1" | sed 's/[\\"]/\\&/g')"
}

separator='{
  "vectors": ['
vector() {
  made=$(receipt "$(header_of "$kid")" "$2")
  printf '%s\n    {\n      "name": %s,\n' "$separator" "$(json_text "$1")"
  printf '      "seed": "%s",\n      "kid": "%s",\n      "x": "%s",\n' "$seed" "$kid" "$x"
  printf '      "payload": %s,\n      "receipt": "%s"\n    }' "$(json_text "$2")" "$made"
  separator=','
}

forgery() {
  printf '%s\n    { "name": %s, "receipt": "%s" }' "$separator" "$(json_text "$1")" "$2"
  separator=','
}

mac_a=ASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4mrze8B
mac_b=AYeEBu-zbGRJgnxlKjOVkZ2HBLtFzAIHi3gPqXJPqs7-
payload='{"workspaceId":"wsp_01m809xk0cem3tfjcg5r7v4q6t","transferId":"trf_01m809xkx4f5dtvepqgyyx9kyn","bizId":"rent-2026-11","amount":"100.50","currency":"USD","sourceWalletId":"wal_01m809xk67ebjrys8zaamprvkg","targetWalletId":"wal_01m809xkk4fgcbphgjzmbmv7s2","completedAt":"2026-11-22T00:18:57.594Z","position":4,"reversesTransferId":null,"source":{"sequence":2,"mac":"'$mac_a'"},"target":{"sequence":1,"mac":"'$mac_b'"}}'
reversal='{"workspaceId":"wsp_01m809xk0cem3tfjcg5r7v4q6t","transferId":"trf_01m809yamvf3fr1yn4c5ssx0hs","bizId":"trf_01m809yamvf3fr1yn4c5ssx0hs","amount":"0.000000000000000001","currency":"ETH","sourceWalletId":"wal_01m809xkk4fgcbphgjzmbmv7s2","targetWalletId":"wal_01m809xk67ebjrys8zaamprvkg","completedAt":"2026-11-22T00:19:20.475Z","position":9007199254740991,"reversesTransferId":"trf_01m809xkx4f5dtvepqgyyx9kyn","source":{"sequence":9007199254740991,"mac":"'$mac_b'"},"target":{"sequence":3,"mac":"'$mac_a'"}}'

# The seeds of the first two tests of RFC 8032, section 7.1.
kid=r1
key 9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60
vector 'a transfer' "$payload"
first=$made
first_head=${first%.*}
kid=r-2_B
key 4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb
vector 'a reversal, under another key, with the largest numbers' "$reversal"
second=$made

separator='
  ],
  "forgeries": ['
changed=$(printf '%s' "$payload" | sed 's/100\.50/900.50/')
forgery 'another payload under the same signature' \
  "$(printf '%s' "$(header_of r1)" | base64url).$(printf '%s' "$changed" | base64url).${first##*.}"
forgery 'signed with the other key' "$(receipt "$(header_of r1)" "$payload")"
forgery 'a key that does not exist' "$(receipt "$(header_of r3)" "$payload")"
forgery 'without an algorithm' "$(printf '{"alg":"none","typ":"wallet-receipt+jwt","kid":"r1"}' | base64url).${first#*.}"
forgery 'no signature' "$first_head."
forgery 'another type, rightly signed' "$(receipt '{"alg":"EdDSA","typ":"JWT","kid":"r-2_B"}' "$payload")"
forgery 'another algorithm, rightly signed' "$(receipt '{"alg":"HS256","typ":"wallet-receipt+jwt","kid":"r-2_B"}' "$payload")"
forgery 'a fourth part' "$second.$second"
forgery 'a padded signature' "$second=="
forgery 'a payload that is no JSON, rightly signed' "$(receipt "$(header_of r-2_B)" 'paid in full')"
forgery 'the signature of another receipt' "$first_head.${second##*.}"
forgery 'empty' ''
printf '\n  ]\n}\n'
