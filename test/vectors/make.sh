#!/bin/sh
# Prints the signing vectors (section 5.2 of the specification) as JSON: `sh make.sh > signing.json`.
#
# It shares no code with the service: the shell joins the message, sha256sum hashes the body and openssl signs. A vector
# has what a client sends (method, target, timestamp, nonce, body) and the expected results (bodyHash, canonicalMessage,
# signature). A `trap` is a common mistake with the message and the wrong signature that it causes.
set -eu
export LC_ALL=C

for tool in openssl sha256sum sed awk od; do
  command -v "$tool" >/dev/null 2>&1 || {
    echo "The signing vectors are made with openssl and sha256sum, and $tool is missing: install openssl and coreutils." >&2
    exit 1
  }
done

body=$(mktemp)
trap 'rm -f "$body"' EXIT
carriage_return=$(printf '\r')

# json_text TEXT: a JSON string. LF and CR are the only control characters in the texts.
json_text() {
  printf '%s\n' "$1" | sed -e 's/[\\"]/\\&/g' -e "s/$carriage_return/\\\\r/g" |
    awk 'BEGIN { printf "\"" } NR > 1 { printf "\\n" } { printf "%s", $0 } END { printf "\"" }'
}

# hash_of FILE: SHA-256 in lower-case hexadecimal.
hash_of() {
  digest=$(sha256sum <"$1")
  printf '%s' "${digest%% *}"
}

# hmac MESSAGE: HMAC-SHA256 under $secret, the 32 raw bytes.
hmac() {
  printf '%s' "$1" | openssl dgst -sha256 -hmac "$secret" -binary
}

sign() {
  hmac "$1" | openssl base64 -A
}

# message METHOD PATH TIMESTAMP NONCE BODY_HASH: five components joined by LF.
message() {
  printf '%s\n%s\n%s\n%s\n%s' "$1" "$2" "$3" "$4" "$5"
}

# vector NAME METHOD TARGET TIMESTAMP NONCE, for the bytes that are in $body. Leaves $path, $time, $nonce, $hash and
# $canonical set for a trap, and the JSON object open.
separator='['
vector() {
  path=${3%%\?*}
  time=$4
  nonce=$5
  hash=$(hash_of "$body")
  canonical=$(message "$(printf '%s' "$2" | tr a-z A-Z)" "$path" "$time" "$nonce" "$hash")
  printf '%s\n  {\n    "name": %s,\n' "$separator" "$(json_text "$1")"
  printf '    "secret": %s,\n' "$(json_text "$secret")"
  printf '    "method": %s,\n' "$(json_text "$2")"
  printf '    "target": %s,\n' "$(json_text "$3")"
  printf '    "timestamp": %s,\n' "$(json_text "$time")"
  printf '    "nonce": %s,\n' "$(json_text "$nonce")"
  printf '    "bodyBase64": "%s",\n' "$(openssl base64 -A <"$body")"
  printf '    "bodyHash": "%s",\n' "$hash"
  printf '    "canonicalMessage": %s,\n' "$(json_text "$canonical")"
  printf '    "signature": "%s"' "$(sign "$canonical")"
  separator=','
}

# mistake WHAT MESSAGE [SIGNATURE]: the trap of the current vector. By default, MESSAGE is signed correctly.
mistake() {
  printf ',\n    "trap": {\n      "mistake": %s,\n' "$(json_text "$1")"
  printf '      "canonicalMessage": %s,\n' "$(json_text "$2")"
  printf '      "signature": "%s"\n    }' "${3-$(sign "$2")}"
}

end() {
  printf '\n  }'
}

# body_is TEXT
body_is() {
  printf '%s' "$1" >"$body"
}

secret=cGwGZ3l5lYQf0hQ2p1Xb7uYt4mR8sKdVnE6aJxW9oTk
uuid=9b2f4c0e-6d1a-4f7b-8c35-2e9d0a7f6b18
wallets=/api/v1/wallets
orders=/api/v1/transfer/query/orders
create=/api/v1/transfer/command/create
compact='{"sourceWalletId":"wal_01k9x5zq3sf4x9vtgkz3b8cdef","targetWalletId":"wal_01k9x5zq3sf4x9vtgkz3b8cdeg","amount":"100.50","currency":"USD"}'

# --- requests without a body -----------------------------------------------------------------------------------------

body_is ''

vector 'GET without a query' GET "$wallets" 1767225600 "$uuid"
end

vector 'GET of one wallet' GET "$wallets/wal_01k9x5zq3sf4x9vtgkz3b8cdef/balance" 1767225601 "$uuid"
end

vector 'DELETE without a body' DELETE "$orders/invoice-42" 1767225602 "$uuid"
end

query='page=0&size=20&sort=createdAt,desc&sort=amount,asc'
vector 'GET with a query, which is not signed' GET "$wallets?$query" 1767225603 "$uuid"
mistake 'signs the query string as well' "$(message GET "$path?$query" "$time" "$nonce" "$hash")"
end

vector 'GET with an empty query' GET "$wallets?" 1767225604 "$uuid"
mistake 'keeps the question mark' "$(message GET "$path?" "$time" "$nonce" "$hash")"
end

vector 'GET with further question marks in its query' GET "$orders?bizIdPrefix=a?b&status=COMPLETED?" 1767225605 "$uuid"
end

vector 'GET: the hash of the empty body is part of the message' GET "$orders" 1767225606 "$uuid"
mistake 'leaves the body hash out' "$(printf '%s\n%s\n%s\n%s' GET "$path" "$time" "$nonce")"
end

# --- the path, as sent ------------------------------------------------------------------------------------------------

vector 'percent-encoding in the path stays as it is sent' GET "$orders/INV%2f2026%20caf%C3%A9" 1767225607 "$uuid"
mistake 'decodes the path' "$(message GET "$orders/INV/2026 café" "$time" "$nonce" "$hash")"
end

vector 'the case of percent-encoding stays as it is sent' GET "$orders/INV%2f2026" 1767225608 "$uuid"
mistake 'rewrites %2f as %2F' "$(message GET "$orders/INV%2F2026" "$time" "$nonce" "$hash")"
end

vector 'dots and doubled slashes stay as they are sent' GET "/api/v1/../v1//wallets/./" 1767225609 "$uuid"
mistake 'normalises the path' "$(message GET /api/v1/wallets/ "$time" "$nonce" "$hash")"
end

# --- the body, byte for byte ------------------------------------------------------------------------------------------

body_is "$compact"
vector 'POST with a body' POST "$create" 1767225610 "$uuid"
end

body_is '{ "currency": "USD",  "amount": "100.50",
  "targetWalletId": "wal_01k9x5zq3sf4x9vtgkz3b8cdeg", "sourceWalletId": "wal_01k9x5zq3sf4x9vtgkz3b8cdef" }'
vector 'POST: spaces, line breaks and key order count' POST "$create" 1767225611 "$uuid"
body_is "$compact"
mistake 'hashes the body after serializing it again' "$(message POST "$path" "$time" "$nonce" "$(hash_of "$body")")"
end

body_is '{"amount":"1.00","currency":"USD","remark":"Café ☕, 你好, مرحبا 🚀"}'
vector 'POST with letters of many scripts and an emoji, in UTF-8' POST "$create" 1767225612 "$uuid"
body_is '{"amount":"1.00","currency":"USD","remark":"Caf\u00e9 \u2615, \u4f60\u597d, \u0645\u0631\u062d\u0628\u0627 \ud83d\ude80"}'
mistake 'hashes the body with its letters escaped' "$(message POST "$path" "$time" "$nonce" "$(hash_of "$body")")"
end

body_is '{"remark":"Caf\u00e9 \ud83d\ude80 \"quoted\" back\\slash \/ \t"}'
vector 'POST with escapes in its JSON' POST "$create" 1767225613 "$uuid"
end

body_is "$compact
"
vector 'POST whose body ends in a line break' POST "$create" 1767225614 "$uuid"
body_is "$compact"
mistake 'trims the body before hashing it' "$(message POST "$path" "$time" "$nonce" "$(hash_of "$body")")"
end

body_is ''
vector 'POST with an empty body' POST "$create" 1767225615 "$uuid"
body_is '{}'
mistake 'hashes {} in place of an empty body' "$(message POST "$path" "$time" "$nonce" "$(hash_of "$body")")"
end

byte=0
while [ "$byte" -lt 256 ]; do
  printf "\\$(printf %03o "$byte")"
  byte=$((byte + 1))
done >"$body"
vector 'PUT of all 256 byte values, which is not text' PUT "$create" 1767225616 "$uuid"
end

head -c 8193 /dev/zero | tr '\0' a >"$body"
vector 'PATCH with a long body' PATCH "$create" 1767225617 "$uuid"
end

# --- timestamp, nonce and method, as texts ----------------------------------------------------------------------------

body_is ''

vector 'the shortest timestamp and nonce' GET "$wallets" 0 x
end

vector 'the longest timestamp' GET "$wallets" 9999999999 "$uuid"
end

vector 'a timestamp keeps its leading zeros' GET "$wallets" 0001767225 "$uuid"
mistake 'signs the timestamp as a number' "$(message GET "$path" 1767225 "$nonce" "$hash")"
end

every_sign='!"#$%&'\''()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\]^_`abcdefghijklmnopqrstuvwxyz{|}~'
vector 'a nonce of 128 characters, with every visible ASCII character' GET "$wallets" 1767225618 \
  "${every_sign}0123456789abcdefghijklmnopqrstuvwx"
end

vector 'the case of the nonce counts' GET "$wallets" 1767225619 9B2F4C0E-6D1A-4F7B-8C35-2E9D0A7F6B18
mistake 'signs the nonce in lower case' "$(message GET "$path" "$time" "$uuid" "$hash")"
end

body_is "$compact"
vector 'the method is signed in upper case' post "$create" 1767225620 "$uuid"
mistake 'signs the method in lower case' "$(message post "$path" "$time" "$nonce" "$hash")"
end

# --- the message and the signature ------------------------------------------------------------------------------------

vector 'the message does not end in a newline' POST "$create" 1767225621 "$uuid"
mistake 'ends the message with a newline' "$canonical
"
end

vector 'the lines of the message are joined by LF' POST "$create" 1767225622 "$uuid"
mistake 'joins the lines by CR LF' "$(printf '%s\r\n%s\r\n%s\r\n%s\r\n%s' POST "$path" "$time" "$nonce" "$hash")"
end

vector 'the body hash is in lower case' POST "$create" 1767225623 "$uuid"
mistake 'writes the body hash in upper case' \
  "$(message POST "$path" "$time" "$nonce" "$(printf '%s' "$hash" | tr a-f A-F)")"
end

vector 'the signature is padded Base64 with + and /' POST "$create" 1767225700 "$uuid"
mistake 'writes the signature in base64url' "$canonical" "$(sign "$canonical" | tr +/ -_ | tr -d =)"
end

vector 'the signature is not in hexadecimal' POST "$create" 1767225625 "$uuid"
mistake 'writes the signature in hexadecimal' "$canonical" "$(hmac "$canonical" | od -An -v -tx1 | tr -d ' \n')"
end

secret=00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff
vector 'a secret is text, whatever it looks like' GET "$wallets" 1767225626 "$uuid"
mistake 'decodes a secret that looks like hexadecimal' "$canonical" \
  "$(printf '%s' "$canonical" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$secret" -binary | openssl base64 -A)"
end

printf '\n]\n'
