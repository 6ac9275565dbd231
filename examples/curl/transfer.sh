#!/bin/sh
# Moves 1.00 between the first two wallets of one currency, with curl and openssl:
#
#     sh transfer.sh --demo .data/demo.json
#     BASE_URL=http://127.0.0.1:8080 API_KEY=ak_... API_SECRET=... sh transfer.sh
#
# openssl would take the secret on its command line, where other users of the machine can see it. So the HMAC is made
# of its parts here (RFC 2104): printf belongs to the shell, and is no process of its own.
set -eu

fail() {
  echo "$*" >&2
  exit 1
}

# field NAME: the values of a string field, in order, from the JSON on standard input. A string of JSON has no bare
# quotes inside, so that after escapes are blanked nothing but a field can look like one.
field() {
  sed -e 's/\\./_/g' | tr ',{}[]' '\n\n\n\n\n' |
    sed -n "s/^[[:space:]]*\"$1\"[[:space:]]*:[[:space:]]*\"\([^\"]*\)\".*/\1/p"
}

find_access() {
  if [ "${1-}" = --demo ] && [ $# -eq 2 ]; then
    [ -r "$2" ] || fail "$2 cannot be read: start the service with npm start."
    base_url=$(field baseUrl <"$2")
    api_key=$(field apiKey <"$2")
    api_secret=$(field apiSecret <"$2")
    [ -n "$base_url" ] && [ -n "$api_key" ] && [ -n "$api_secret" ] || fail "$2 does not hold a demo."
  elif [ $# -eq 0 ]; then
    base_url=${BASE_URL:-}
    api_key=${API_KEY:-}
    api_secret=${API_SECRET:-}
    [ -n "$base_url" ] && [ -n "$api_key" ] && [ -n "$api_secret" ] ||
      fail "BASE_URL, API_KEY or API_SECRET is not set: set all three, or name the demo's file with --demo FILE."
  else
    fail "This takes --demo FILE or nothing, and was given: $*"
  fi
  base_url=${base_url%/}
}

# pad NUMBER: the secret, filled up with zeros to a block of 64 bytes, each XORed with NUMBER, as escapes for printf %b.
pad() {
  rest=$api_secret count=0
  while [ "$count" -lt 64 ]; do
    code=0
    [ -z "$rest" ] || code=$(printf '%d' "'$rest")
    printf '\\0%03o' $((code ^ $1))
    rest=${rest#?} count=$((count + 1))
  done
}

# hmac: HMAC-SHA256 of standard input under the secret, as bytes.
hmac() {
  { printf '%b' "$outer"; { printf '%b' "$inner"; cat; } | openssl dgst -sha256 -binary; } | openssl dgst -sha256 -binary
}

# send METHOD TARGET [BODY]: one signed request (section 5). The answer's JSON is on standard output; fails when none
# came. The very text that is hashed is sent.
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

# succeeded ANSWER
succeeded() {
  printf '%s' "$1" | grep -q '"success"[[:space:]]*:[[:space:]]*true'
}

# reason ANSWER: what a refusal says.
reason() {
  text=$(printf '%s' "$1" | field message)
  [ -n "$text" ] || text='the answer is not one of the wallet service'
  # The detail is a whole sentence, commas and all: `field` would cut it.
  detail=$(printf '%s' "$1" | sed -n -e 's/\\./_/g' -e 's/.*"detail"[[:space:]]*:[[:space:]]*"\([^"]*\)".*/\1/p')
  code=$(printf '%s' "$1" | field code)
  echo "${code:+$code }$text${detail:+: $detail}"
}

get() {
  answer=$(send GET "$1") || fail "No answer came from $base_url (exit code $? of curl): see whether the service runs."
  succeeded "$answer" || fail "GET ${1%%\?*} was refused: $(reason "$answer")"
  printf '%s' "$answer"
}

# create BODY: sent again, under the same bizId, while it is not known to be done or refused. It moves money once.
create() {
  for pause in 1 2 4 0; do
    answer=$(send POST /api/v1/transfer/command/create "$1") || answer=
    if [ -n "$answer" ]; then
      succeeded "$answer" && return
      case $(printf '%s' "$answer" | field code) in
        S002 | S003 | S029) ;;
        *) fail "The transfer was refused: $(reason "$answer")" ;;
      esac
    fi
    sleep "$pause"
  done
  fail "The transfer was not confirmed: send it again under the bizId $biz_id, or ask for that order."
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
[ ${#api_secret} -le 64 ] || fail 'The secret is longer than 64 characters: it is not one of the wallet service.'
inner=$(pad 54) outer=$(pad 92)

wallets=$(get '/api/v1/wallets?status=ACTIVE&sort=createdAt,asc&size=100')
source='' target='' known=''
# Split into words on purpose: one for each wallet.
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
[ -n "$target" ] || fail 'No two of the first 100 active wallets have one currency: create another one.'

print_balances 'before'
# 1 with as many decimals as the currency's balances have.
case $balance in
  *.*) amount=1.$(printf '%s' "${balance#*.}" | tr 0-9 0) ;;
  *) amount=1 ;;
esac
biz_id=example-$(openssl rand -hex 16)
create "{\"sourceWalletId\":\"$source\",\"targetWalletId\":\"$target\",\"amount\":\"$amount\",\"currency\":\"$currency\",\"bizId\":\"$biz_id\"}"
order=$(get "/api/v1/transfer/query/orders/$biz_id")
echo "moved   $(printf '%s' "$order" | field amount) $currency as $(printf '%s' "$order" | field transferId), $(printf '%s' "$order" | field status)"
print_balances 'after '
