#!/bin/sh
# Transfers 1.00 between the first two wallets with the same currency, with curl and openssl:
#
#     sh transfer.sh --demo .data/demo.json
#     BASE_URL=http://127.0.0.1:8080 API_KEY=ak_... API_SECRET=... sh transfer.sh
#
# openssl takes the key of an HMAC on its command line, where other users of the machine can see it. This script therefore
# computes the HMAC from two hashes (RFC 2104). printf is a shell builtin and starts no process.
set -eu

fail() {
  echo "$*" >&2
  exit 1
}

# field NAME: prints the values of a string field, in order, from the JSON on standard input. A JSON string contains no
# unescaped quotes, so once escapes are replaced, only a field looks like one.
field() {
  sed -e 's/\\./_/g' | tr ',{}[]' '\n\n\n\n\n' |
    sed -n "s/^[[:space:]]*\"$1\"[[:space:]]*:[[:space:]]*\"\([^\"]*\)\".*/\1/p"
}

find_access() {
  if [ "${1-}" = --demo ] && [ $# -eq 2 ]; then
    [ -r "$2" ] || fail "Cannot read $2: start the service with npm start."
    base_url=$(field baseUrl <"$2")
    api_key=$(field apiKey <"$2")
    api_secret=$(field apiSecret <"$2")
    [ -n "$base_url" ] && [ -n "$api_key" ] && [ -n "$api_secret" ] ||
      fail "$2 is not the demo.json of npm start: give that file."
  elif [ $# -eq 0 ]; then
    base_url=${BASE_URL:-}
    api_key=${API_KEY:-}
    api_secret=${API_SECRET:-}
    [ -n "$base_url" ] && [ -n "$api_key" ] && [ -n "$api_secret" ] ||
      fail "BASE_URL, API_KEY or API_SECRET is not set: set all three, or add --demo FILE with the demo.json of npm start."
  else
    fail "Unknown arguments: $*. The only option is --demo FILE."
  fi
  base_url=${base_url%/}
}

# pad NUMBER: prints the secret, padded with zeros to 64 bytes, each XORed with NUMBER, as escapes for printf %b.
pad() {
  rest=$api_secret count=0
  while [ "$count" -lt 64 ]; do
    code=0
    [ -z "$rest" ] || code=$(printf '%d' "'$rest")
    printf '\\0%03o' $((code ^ $1))
    rest=${rest#?} count=$((count + 1))
  done
}

# hmac: prints the HMAC-SHA256 of standard input under the secret, as bytes.
hmac() {
  { printf '%b' "$outer"; { printf '%b' "$inner"; cat; } | openssl dgst -sha256 -binary; } | openssl dgst -sha256 -binary
}

# send METHOD TARGET [BODY]: sends one signed request (section 5) and prints the JSON of the response. Fails without a
# response. The body that is sent is exactly the text that is hashed.
send() {
  method=$1 target=$2 body=${3-}
  path=${target%%\?*}
  timestamp=$(date +%s)
  nonce=$(openssl rand -hex 16)
  body_hash=$(printf '%s' "$body" | openssl dgst -sha256 -r | cut -c 1-64)
  signature=$(printf '%s\n%s\n%s\n%s\n%s' "$method" "$path" "$timestamp" "$nonce" "$body_hash" |
    hmac | openssl base64 -A)
  set -- -H "X-Api-Key: $api_key" -H "X-Timestamp: $timestamp" -H "X-Nonce: $nonce" -H "X-Signature: $signature" \
    -H 'X-LOCALE: en-US'
  [ -z "$body" ] || set -- "$@" -H 'Content-Type: application/json' --data-binary "$body"
  curl --silent --path-as-is --globoff --connect-timeout 5 --max-time 30 -X "$method" "$@" "$base_url$target"
}

# succeeded ANSWER: whether the response reports success.
succeeded() {
  printf '%s' "$1" | grep -q '"success"[[:space:]]*:[[:space:]]*true'
}

# reason ANSWER: prints code, message and detail of an error response.
reason() {
  text=$(printf '%s' "$1" | field message)
  [ -n "$text" ] || text='the response is not one of the wallet service'
  # `field` splits at commas, and the detail is a sentence that may contain some.
  detail=$(printf '%s' "$1" | sed -n -e 's/\\./_/g' -e 's/.*"detail"[[:space:]]*:[[:space:]]*"\([^"]*\)".*/\1/p')
  code=$(printf '%s' "$1" | field code)
  echo "${code:+$code }$text${detail:+: $detail}"
}

get() {
  answer=$(send GET "$1") || fail "$base_url did not answer (curl exited with $?): check whether the service is running."
  succeeded "$answer" || fail "GET ${1%%\?*} failed: $(reason "$answer")"
  printf '%s' "$answer"
}

# create BODY: creates the transfer. Retries with the same bizId while the outcome is unknown, so the money moves once.
create() {
  for pause in 1 2 4 0; do
    answer=$(send POST /api/v1/transfer/command/create "$1") || answer=
    if [ -n "$answer" ]; then
      succeeded "$answer" && return
      case $(printf '%s' "$answer" | field code) in
        S002 | S003 | S029) ;;
        *) fail "The transfer failed: $(reason "$answer")" ;;
      esac
    fi
    sleep "$pause"
  done
  fail "The outcome of the transfer is unknown: retry it with the bizId $biz_id, or get that order."
}

# print_balances WHEN
print_balances() {
  for wallet in "$source" "$target"; do
    answer=$(get "/api/v1/wallets/$wallet/balance")
    balance=$(printf '%s' "$answer" | field balance)
    echo "$1  $wallet  $balance $currency"
  done
}

for tool in curl openssl; do
  command -v "$tool" >/dev/null 2>&1 || fail "This needs $tool: install it."
done
find_access "$@"
[ ${#api_secret} -le 64 ] || fail 'The API secret has more than 64 characters: check API_SECRET.'
inner=$(pad 54) outer=$(pad 92)

wallets=$(get '/api/v1/wallets?status=ACTIVE&sort=createdAt,asc&size=100')
source='' target='' known=''
# Not quoted, to get one word for each wallet.
set -- $(printf '%s' "$wallets" | field currency)
for wallet in $(printf '%s' "$wallets" | field walletId); do
  currency=$1
  shift
  case $known in
    *" $currency="*)
      source=${known#*" $currency="}
      source=${source%% *}
      target=$wallet
      break
      ;;
  esac
  known="$known $currency=$wallet "
done
[ -n "$target" ] || fail 'No two of the first 100 active wallets have the same currency: create another wallet.'

print_balances 'before'
# 1, with the decimals of the currency.
case $balance in
  *.*) amount=1.$(printf '%s' "${balance#*.}" | tr 0-9 0) ;;
  *) amount=1 ;;
esac
biz_id=example-$(openssl rand -hex 16)
create "{\"sourceWalletId\":\"$source\",\"targetWalletId\":\"$target\",\"amount\":\"$amount\",\"currency\":\"$currency\",\"bizId\":\"$biz_id\"}"
order=$(get "/api/v1/transfer/query/orders/$biz_id")
echo "moved   $(printf '%s' "$order" | field amount) $currency as $(printf '%s' "$order" | field transferId), $(printf '%s' "$order" | field status)"
print_balances 'after '
