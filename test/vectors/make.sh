#!/bin/sh
# Prints the signing vectors (section 5 of the specification) as JSON: `sh make.sh > signing.json`.
#
# It shares nothing with the service but the specification: the shell joins the message, sha256sum hashes the body,
# openssl signs. A vector is what a client sends (method, target, timestamp, nonce, body) and what must come of it
# (bodyHash, canonicalMessage, signature). Some have a `trap`: a mistake that is easy to make, with the message and the
# signature that it leads to, which no server may accept in place of the right one.
set -eu
export LC_ALL=C

for tool in openssl sha256sum sed wc; do
  command -v "$tool" >/dev/null 2>&1 || {
    echo "The signing vectors are made with openssl and sha256sum, and $tool is missing: install openssl and coreutils." >&2
    exit 1
  }
done

body=$(mktemp)
trap 'rm -f "$body"' EXIT
first=yes
secret=cGwGZ3l5lYQf0hQ2p1Xb7uYt4mR8sKdVnE6aJxW9oTk
wallets=/api/v1/wallets
orders=/api/v1/transfer/query/orders
create=/api/v1/transfer/command/create
uuid=9b2f4c0e-6d1a-4f7b-8c35-2e9d0a7f6b18

# json_text TEXT: as a JSON string. Control characters other than LF do not occur.
json_text() {
  printf '"'
  printf '%s' "$1" | sed -e 's/[\\"]/\\&/g' -e '$!s/$/\\n/' | join_lines
  printf '"'
}

join_lines() {
  while IFS= read -r line || [ -n "$line" ]; do printf '%s' "$line"; done
}

# hash_of FILE: lower-case hexadecimal.
hash_of() {
  digest=$(sha256sum <"$1")
  printf '%s' "${digest%% *}"
}

# hmac MESSAGE [SECRET]: the 32 raw bytes.
hmac() {
  printf '%s' "$1" | openssl dgst -sha256 -hmac "${2-$secret}" -binary
}

sign() {
  hmac "$@" | openssl base64 -A
}

# message METHOD PATH TIMESTAMP NONCE BODY_HASH: the five components, joined by LF.
message() {
  printf '%s\n%s\n%s\n%s\n%s' "$@"
}

# vector NAME METHOD TARGET TIMESTAMP NONCE: with the bytes that are in $body now. Leaves $path, $hash and $canonical
# for a trap, and the object open for one.
vector() {
  method=$(printf '%s' "$2" | tr a-z A-Z)
  path=${3%%\?*}
  hash=$(hash_of "$body")
  canonical=$(message "$method" "$path" "$4" "$5" "$hash")
  if [ "$first" = yes ]; then printf '[\n'; else printf ',\n'; fi
  first=no
  printf '  {\n    "name": %s,\n' "$(json_text "$1")"
  printf '    "secret": %s,\n' "$(json_text "$secret")"
  printf '    "method": %s,\n' "$(json_text "$2")"
  printf '    "target": %s,\n' "$(json_text "$3")"
  printf '    "timestamp": %s,\n' "$(json_text "$4")"
  printf '    "nonce": %s,\n' "$(json_text "$5")"
  printf '    "bodyBase64": "%s",\n' "$(openssl base64 -A <"$body")"
  printf '    "bodyHash": "%s",\n' "$hash"
  printf '    "canonicalMessage": %s,\n' "$(json_text "$canonical")"
  printf '    "signature": "%s"' "$(sign "$canonical")"
}

# mistake WHAT MESSAGE SIGNATURE: the trap of the vector that was just begun.
mistake() {
  printf ',\n    "trap": {\n      "mistake": %s,\n' "$(json_text "$1")"
  printf '      "canonicalMessage": %s,\n' "$(json_text "$2")"
  printf '      "signature": "%s"\n    }' "$3"
}

end() {
  printf '\n  }'
}

no_body() {
  : >"$body"
}

no_body
vector 'GET without a query' GET "$wallets" 1767225600 "$uuid"
end
vector 'GET of one wallet' GET "$wallets/wal_01k9x5zq3sf4x9vtgkz3b8cdef/balance" 1767225601 "$uuid"
end
vector 'GET with a query, which is not signed' GET "$wallets?page=0&size=20&sort=createdAt,desc" 1767225602 "$uuid"
mistake 'signs the query string as well' \
  "$(message GET "$wallets?page=0&size=20&sort=createdAt,desc" 1767225602 "$uuid" "$hash")" \
  "$(sign "$(message GET "$wallets?page=0&size=20&sort=createdAt,desc" 1767225602 "$uuid" "$hash")")"
end
vector 'GET with an empty query' GET "$wallets?" 1767225603 "$uuid"
mistake 'keeps the question mark' "$(message GET "$wallets?" 1767225603 "$uuid" "$hash")" \
  "$(sign "$(message GET "$wallets?" 1767225603 "$uuid" "$hash")")"
end
vector 'GET with question marks in the query' GET "$orders?bizIdPrefix=a?b&status=COMPLETED?" 1767225604 "$uuid"
end
vector 'GET whose empty body is hashed all the same' GET "$orders" 1767225605 "$uuid"
mistake 'leaves the body hash out' "$(message GET "$orders" 1767225605 "$uuid" '')" \
  "$(sign "$(message GET "$orders" 1767225605 "$uuid" '')")"
end
vector 'DELETE without a body' DELETE "$orders/invoice-42" 1767225606 "$uuid"
end

printf '%s' '{"sourceWalletId":"wal_01k9x5zq3sf4x9vtgkz3b8cdef","targetWalletId":"wal_01k9x5zq3sf4x9vtgkz3b8cdeg","amount":"100.50","currency":"USD"}' >"$body"
vector 'POST with a body' POST "$create" 1767225607 "$uuid"
end
vector 'POST whose message ends without a newline' POST "$create" 1767225608 "$uuid"
# The shell would strip it: the mistake is made with printf at the end of the pipe.
newline_signature=$(printf '%s\n' "$canonical" | openssl dgst -sha256 -hmac "$secret" -binary | openssl base64 -A)
mistake 'ends the message with a newline' "$canonical
" "$newline_signature"
end
vector 'POST whose body hash is in lower case' POST "$create" 1767225609 "$uuid"
upper=$(message POST "$create" 1767225609 "$uuid" "$(printf '%s' "$hash" | tr a-f A-F)")
mistake 'writes the body hash in upper case' "$upper" "$(sign "$upper")"
end
vector 'POST whose lines end in LF' POST "$create" 1767225610 "$uuid"
crlf=$(printf 'POST\r\n%s\r\n1767225610\r\n%s\r\n%s' "$create" "$uuid" "$hash")
end
vector 'POST whose signature has both + and /' POST "$create" 1767225611 "$uuid"
mistake 'writes the signature in base64url' "$canonical" "$(sign "$canonical" | tr +/ -_ | tr -d =)"
end
vector 'POST whose signature is Base64, not hexadecimal' POST "$create" 1767225612 "$uuid"
mistake 'writes the signature in hexadecimal' "$canonical" "$(hmac "$canonical" | od -An -v -tx1 | tr -d ' \n')"
end
