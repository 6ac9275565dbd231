#!/bin/sh
# A client of the wallet service. Needs a POSIX shell, curl and openssl.
#
# It transfers 1.00 between the first two wallets with the same currency:
#
#     sh wallet_client.sh --demo .data/demo.json
#     BASE_URL=http://127.0.0.1:8080 API_KEY=ak_... API_SECRET=... sh wallet_client.sh
#
# Amounts and balances are decimal strings: nothing computes with them.
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

# number NAME: prints the value of a numeric field.
number() {
  sed -e 's/\\./_/g' -n -e "s/.*\"$1\"[[:space:]]*:[[:space:]]*\([0-9]*\).*/\1/p"
}

# use_secret SECRET: prepares the two keys of the HMAC (RFC 2104). `openssl dgst -hmac` would take the secret on its command
# line, where other users of the machine can see it. printf is a shell builtin and starts no process.
use_secret() {
  [ ${#1} -le 64 ] || fail 'The API secret has more than 64 characters: check API_SECRET.'
  inner='' outer='' rest=$1 count=0
  while [ "$count" -lt 64 ]; do
    code=0
    [ -z "$rest" ] || code=$(printf '%d' "'$rest")
    inner=$inner$(printf '\\0%03o' $((code ^ 54))) outer=$outer$(printf '\\0%03o' $((code ^ 92)))
    rest=${rest#?} count=$((count + 1))
  done
}

# sha256: prints the hash of standard input in hexadecimal.
sha256() {
  openssl dgst -sha256 -r | cut -c 1-64
}

# sign METHOD PATH TIMESTAMP NONCE BODY_HASH: prints X-Signature (section 5.2). The path has no query string.
sign() {
  printf '%b%s\n%s\n%s\n%s\n%s' "$inner" "$1" "$2" "$3" "$4" "$5" | openssl dgst -sha256 -binary |
    { printf '%b' "$outer" && cat; } | openssl dgst -sha256 -binary | openssl base64 -A
}

# send METHOD TARGET [BODY]: sends one attempt, with a nonce of its own. The body that is sent is exactly the text that is
# hashed. Sets headers and answer, which are empty if there is none.
send() {
  method=$1 target=$2 body=${3-}
  timestamp=$(($(date +%s) + clock_offset))
  nonce=$(openssl rand -hex 16)
  signature=$(sign "$method" "${target%%\?*}" "$timestamp" "$nonce" "$(printf '%s' "$body" | sha256)")
  set --
  [ -z "$body" ] || set -- -H 'Content-Type: application/json' --data-binary @-
  # Other users of the machine can see command lines, so headers and body are not on that of curl.
  response=$(
    printf '%s' "$body" | curl --silent --include --path-as-is --globoff --max-time 10 -X "$method" "$@" \
      -H @/dev/fd/3 "$base_url$target" 3<<EOF
X-Api-Key: $api_key
X-Timestamp: $timestamp
X-Nonce: $nonce
X-Signature: $signature
X-LOCALE: en-US
EOF
  ) || response=
  response=$(printf '%s\n' "$response" | tr -d '\r')
  headers=$(printf '%s\n' "$response" | sed '/^$/q')
  answer=$(printf '%s\n' "$response" | sed '1,/^$/d')
}

# header NAME: prints the value of a header of the response.
header() {
  printf '%s\n' "$headers" | grep -i "^$1:" | sed 's/^[^:]*: *//'
}

# call METHOD TARGET [BODY]: sets answer to the JSON of a successful response. Retries while the service is unavailable or
# the response is lost. Give each create a bizId: it prevents a second execution. Without one, a lost POST is not retried.
call() {
  for attempt in 1 2 3 4 5; do
    send "$@"
    code=$(printf '%s' "$answer" | grep '"success"' | field code)
    status=$(printf '%s' "$headers" | sed -n '1s/^HTTP[^ ]* \([0-9]*\).*/\1/p')
    case $method$body in
      GET* | *'"bizId":'*) is_repeatable=yes ;;
      *) is_repeatable=no ;;
    esac
    case $is_repeatable/$code/$status in
      */2000/*) return ;;
      # The clock may be wrong: use that of the service. What is signed for later can be kept until then.
      */GA2013/*)
        clock_offset=$(($(printf '%s' "$answer" | number timestamp) / 1000 - $(date +%s)))
        [ "$clock_offset" -le 86400 ] || clock_offset=86400
        ;;
      */S002/* | */*/429 | yes/*/5?? | yes//*) ;;
      *) break ;;
    esac
    pause=$(header Retry-After | grep '^[0-9][0-9]*$' || echo 1)
    [ "$attempt" -lt 5 ] && [ "$pause" -le 60 ] || break
    sleep "$pause"
  done
  [ "$method" = POST ] && unknown=' The outcome is unknown: repeat the call with the same bizId.' || unknown=
  [ -n "$code" ] || fail "$base_url did not answer as the wallet service.$unknown"
  # `field` splits at commas, and the detail is a sentence that may contain some.
  detail=$(printf '%s' "$answer" | sed -n -e "s/\\\\./'/g" -e 's/.*"detail"[[:space:]]*:[[:space:]]*"\([^"]*\)".*/\1/p')
  message=$(printf '%s' "$answer" | field message)
  fail "$code $message (HTTP $status, request $(header X-Request-Id)): $detail"
}

# create_transfer SOURCE TARGET AMOUNT CURRENCY BIZ_ID: with the same bizId, the money moves once.
create_transfer() {
  call POST /api/v1/transfer/command/create \
    "{\"sourceWalletId\":\"$1\",\"targetWalletId\":\"$2\",\"amount\":\"$3\",\"currency\":\"$4\",\"bizId\":\"$5\"}"
}

# find_pair: sets source and target to the first two wallets with the same currency, and currency. Reads page after page.
find_pair() {
  page=0 pages=1 known=''
  while [ "$page" -lt "$pages" ]; do
    call GET "/api/v1/wallets?status=ACTIVE&sort=createdAt,asc&size=5&page=$page"
    page=$((page + 1)) pages=$(printf '%s' "$answer" | number totalPages)
    # Not quoted, to get one word for each wallet.
    set -- $(printf '%s' "$answer" | field currency)
    for target in $(printf '%s' "$answer" | field walletId); do
      currency=$1
      shift
      case $known in
        *" $currency="*)
          source=${known#*" $currency="}
          source=${source%% *}
          return
          ;;
      esac
      known="$known $currency=$target "
    done
  done
  fail 'No two active wallets have the same currency: create another wallet.'
}

# print_balances WHEN
print_balances() {
  for wallet in "$source" "$destination"; do
    call GET "/api/v1/wallets/$wallet/balance"
    balance=$(printf '%s' "$answer" | field balance)
    echo "$1  $wallet  $balance $currency"
  done
}

run_demo() {
  [ -n "$base_url" ] && [ -n "$api_key" ] && [ -n "$api_secret" ] || fail "$1"
  base_url=${base_url%/}
  use_secret "$api_secret"
  find_pair
  destination=$target
  print_balances 'before'
  # 1, with the decimals of the currency.
  case $balance in
    *.*) amount=1.$(printf '%s' "${balance#*.}" | tr 0-9 0) ;;
    *) amount=1 ;;
  esac
  biz_id=example-$(openssl rand -hex 16)
  create_transfer "$source" "$destination" "$amount" "$currency" "$biz_id"
  call GET "/api/v1/transfer/query/orders/$biz_id"
  echo "moved   $amount $currency as $(printf '%s' "$answer" | field transferId), $(printf '%s' "$answer" | field status)"
  print_balances 'after '
}

# print_signatures: prints the signature of each test vector. The file has one field on each line, the body last.
print_signatures() {
  secret=''
  while IFS= read -r line; do
    value=${line#*: \"}
    value=${value%,}
    value=${value%\"}
    case $line in
      '    "secret": '*)
        [ "$value" = "$secret" ] || use_secret "$value"
        secret=$value
        ;;
      '    "method": '*) method=$(printf '%s' "$value" | tr '[:lower:]' '[:upper:]') ;;
      '    "target": '*) target=$value ;;
      '    "timestamp": '*) timestamp=$value ;;
      '    "nonce": '*) nonce=$(printf '%s' "$value" | sed 's/\\\(["\\]\)/\1/g') ;;
      '    "bodyBase64": '*)
        body_hash=$(printf '%s' "$value" | openssl base64 -d -A | sha256)
        printf '%s\n' "$(sign "$method" "${target%%\?*}" "$timestamp" "$nonce" "$body_hash")"
        ;;
    esac
  done <"$vectors"
}

for tool in curl openssl; do
  command -v "$tool" >/dev/null 2>&1 || fail "This needs $tool: install it."
done
clock_offset=0
case $#/${1-} in
  0/)
    base_url=${BASE_URL:-} api_key=${API_KEY:-} api_secret=${API_SECRET:-}
    run_demo 'Set BASE_URL, API_KEY, API_SECRET, or add --demo with the demo.json of npm start.'
    ;;
  2/--demo)
    not_demo="$2 is not a demo.json: start the service with npm start."
    [ -r "$2" ] || fail "$not_demo"
    base_url=$(field baseUrl <"$2") api_key=$(field apiKey <"$2") api_secret=$(field apiSecret <"$2")
    run_demo "$not_demo"
    ;;
  2/--vectors)
    vectors=$2
    print_signatures
    ;;
  *) fail 'Use --demo FILE, --vectors FILE or no argument.' ;;
esac
