import { resolve } from 'node:path'
import type { Demo } from './demo.ts'

type Pages = { docs: boolean; console: boolean }

/**
 * What `npm start` prints when everything is running. It contains the secret on the first start only.
 *
 * @param has whether the gateway serves the documentation and the console
 */
export function banner(demo: Demo, isNew: boolean, demoFile: string, dataDir: string, has: Pages): string {
  const variable = dataDir === resolve('.data') ? '' : `DATA_DIR=${quote(dataDir)} `
  return `
The wallet service is ready.

  Base URL    ${demo.baseUrl}
  API key     ${demo.apiKey}
  API secret  ${isNew ? `${demo.apiSecret} (also in the file below)` : 'in the file below'}
  Demo        ${demoFile}
  Data, logs  ${dataDir}
${has.docs ? `\nMake a signed transfer in the browser, with this key and secret: ${demo.baseUrl}/docs\n` : ''}${has.console ? `\nWatch and administer it in the browser, with the adminToken in the demo file: ${demo.consoleUrl}\n` : ''}
Make a signed call, from this directory:

${variable}npm run call -- GET /api/v1/wallets

Or with bash or zsh, curl and openssl, from any directory:

${signedCall(demo, '/api/v1/wallets', demoFile)}

Ctrl-C stops everything and keeps the data.
`
}

/**
 * A script for bash and zsh that signs a GET request (section 5.2). It reads the secret from the file, to keep it out of the
 * shell history, and computes the HMAC from two hashes, to keep it off command lines, which every user of the machine can
 * see. zsh needs the `$` of `$i`.
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
    -H "X-Nonce: $nonce" -H "X-Signature: $signature" -H 'X-LOCALE: en-US'
  echo
)`
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
