import { resolve } from 'node:path'
import type { Demo } from './demo.ts'

/** What a person sees when everything runs. The secret itself is shown on the first start only. */
export function banner(demo: Demo, isNew: boolean, demoFile: string, dataDir: string): string {
  const setting = dataDir === resolve('.data') ? '' : `DATA_DIR=${quote(dataDir)} `
  return `
The wallet service is ready.

  Base URL    ${demo.baseUrl}
  API key     ${demo.apiKey}
  API secret  ${isNew ? `${demo.apiSecret} (also in the file below)` : 'in the file below'}
  Demo        ${demoFile}
  Data, logs  ${dataDir}

A signed call, from this directory:

${setting}npm run call -- GET /api/v1/wallets

The same with nothing but bash or zsh, curl and openssl, from anywhere:

${signedCall(demo, '/api/v1/wallets', demoFile)}

Ctrl-C stops everything; the data stays.
`
}

/**
 * Bash, and zsh, which needs the `$` of `$i`, that signs a GET as section 5.2 says. The secret is read from the file, to keep it out of shell
 * histories, and the HMAC is made of its parts, to keep it off command lines, which every user of a machine can see.
 */
function signedCall(demo: Demo, path: string, demoFile: string): string {
  return `(
  secret=$(sed -n 's/.*"apiSecret": "\\(.*\\)".*/\\1/p' ${quote(demoFile)})
  time=$(date +%s)
  nonce=$(openssl rand -hex 16)
  body=$(printf '' | openssl dgst -sha256 -r | cut -c 1-64)
  pad() { for ((i = 0; i < 64; i++)); do printf -v c %d "'\${secret:$i:1}"; printf -v c '\\\\x%02x' $((c ^ $1)); printf %b "$c"; done; }
  hash() { openssl dgst -sha256 -binary; }
  signature=$({ pad 92; { pad 54; printf 'GET\\n${path}\\n%s\\n%s\\n%s' "$time" "$nonce" "$body"; } | hash; } |
    hash | openssl base64)
  curl -sS ${quote(demo.baseUrl + path)} -H 'X-Api-Key: ${demo.apiKey}' -H "X-Timestamp: $time" \\
    -H "X-Nonce: $nonce" -H "X-Signature: $signature"
  echo
)`
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
