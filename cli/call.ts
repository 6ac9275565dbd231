/** `npm run call -- METHOD PATH` signs one request (section 5.2), sends it, and prints the response. */
import { readFile } from 'node:fs/promises'
import { type IncomingHttpHeaders, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { join } from 'node:path'
import { buffer as readBytes, text as readText } from 'node:stream/consumers'
import { bodyHash, type Credentials, canonicalMessage, signedHeaders } from '@workspace-wallet/client'
import { dataDirOf } from './command-line/data-dir.ts'
import { anyText, UsageError, type Values } from './command-line/flags.ts'
import { createCommand, runProgram } from './command-line/program.ts'
import { readJson } from './start/private-file.ts'

const timeoutMs = 30_000

const flags = {
  body: { value: 'JSON', help: 'the body, sent exactly as given', parse: anyText },
  'body-file': { value: 'FILE', help: 'a file that contains the body; - reads standard input', parse: anyText },
  key: { value: 'ak_…', help: 'the API key (default: API_KEY, else the key of the demo)', parse: anyText },
  secret: {
    value: 'SECRET',
    help: 'its secret (default: API_SECRET, else the secret of the demo). Other users of this machine can read it in the process list, so prefer API_SECRET',
    parse: anyText,
  },
  'base-url': {
    value: 'URL',
    help: 'the gateway (default: BASE_URL, else the gateway of the demo)',
    parse: parseBaseUrl,
  },
  locale: {
    value: 'TAG',
    help: 'the language of error details: en-US or zh-CN (default: that of LC_ALL or LANG, else en-US)',
    choices: ['en-US', 'zh-CN'],
    parse: anyText,
  },
  verbose: { help: 'also print the canonical message and all headers' },
  json: { help: 'print the body of the response as received and nothing else' },
} as const

type Given = Values<typeof flags>
type Access = Credentials & { baseUrl: string }
type SignedRequest = {
  url: URL
  method: string
  message: string
  headers: Record<string, string>
  body: Buffer
}
type Answer = { status: string; headers: IncomingHttpHeaders; body: string }

async function call(values: Given, words: string[]): Promise<void> {
  const { method, target } = readTarget(words)
  const body = await readBody(values)
  const locale = values.locale ?? localeOf(process.env)
  const request = await signRequest(await findAccess(values, process.env), method, target, body, locale)
  if (values.verbose) showRequest(request, values.json)
  const answer = await send(request, target)
  if (!show(answer, values)) process.exitCode = 1
  if (request.method === 'POST' && body === undefined && answer.status.startsWith('415'))
    console.error('The request had no body: add --body or --body-file.')
}

function readTarget([method = '', target = '']: string[]): { method: string; target: string } {
  if (!/^[A-Za-z]+$/.test(method))
    throw new UsageError(`"${method}" is not an HTTP method: put one, such as GET, before the path.`)
  if (!target.startsWith('/'))
    throw new UsageError(`"${target}" is not a path: begin it with a slash, such as /api/v1/wallets.`)
  if (/[^!-~]/.test(target))
    throw new UsageError(
      'The path has a space or a non-ASCII character: percent-encode it, for example %20 for a space.',
    )
  return { method: method.toUpperCase(), target }
}

function parseBaseUrl(text: string): string {
  const url = URL.parse(text)
  if (!url || !['http:', 'https:'].includes(url.protocol) || url.pathname !== '/' || url.search || url.hash)
    throw new Error(`must be a URL without a path, such as http://127.0.0.1:8080, not "${text}"`)
  return url.origin
}

/** Undefined if there is no body: the request then has no Content-Type. */
async function readBody({ body, 'body-file': file }: Given): Promise<Buffer | undefined> {
  if (body !== undefined && file !== undefined)
    throw new UsageError('--body and --body-file are both given: remove one of them.')
  if (body !== undefined) return Buffer.from(body)
  if (file === undefined) return undefined
  try {
    return file === '-' ? await readBytes(process.stdin) : await readFile(file)
  } catch (error) {
    throw new Error(
      `Cannot read the body from ${file} (${(error as NodeJS.ErrnoException).code}): correct --body-file.`,
      {
        cause: error,
      },
    )
  }
}

async function findAccess(values: Given, environment: NodeJS.ProcessEnv): Promise<Access> {
  const apiKey = values.key || environment.API_KEY
  const apiSecret = values.secret || environment.API_SECRET
  if (!apiKey !== !apiSecret)
    throw new Error(
      apiKey
        ? 'The API key is set without its secret: set API_SECRET.'
        : 'The API secret is set without its key: add --key.',
    )
  const baseUrl = values['base-url'] ?? baseUrlOf(environment)
  if (apiKey && apiSecret && baseUrl) return { baseUrl, apiKey, apiSecret }
  const demo = await readDemo(dataDirOf(environment))
  return { baseUrl: baseUrl ?? demo.baseUrl, apiKey: apiKey || demo.apiKey, apiSecret: apiSecret || demo.apiSecret }
}

function baseUrlOf({ BASE_URL: text }: NodeJS.ProcessEnv): string | undefined {
  try {
    return text ? parseBaseUrl(text) : undefined
  } catch (error) {
    throw new Error(`BASE_URL ${(error as Error).message}.`, { cause: error })
  }
}

async function readDemo(dataDir: string): Promise<Access> {
  const file = join(dataDir, 'demo.json')
  let demo: Partial<Access> | undefined
  try {
    demo = (await readJson(file)) as Partial<Access> | undefined
  } catch (error) {
    throw new Error(`Cannot read ${file}: ${(error as Error).message}`, { cause: error })
  }
  const { baseUrl, apiKey, apiSecret } = demo ?? {}
  if (!baseUrl || !apiKey || !apiSecret)
    throw new Error(
      `There is no demo key in ${file}: start the service with npm start, or set --key, API_SECRET and --base-url.`,
    )
  return { baseUrl, apiKey, apiSecret }
}

/** The user's language as a language tag: zh-CN for zh_CN.UTF-8, en-US for C. */
function localeOf({ LC_ALL, LC_MESSAGES, LANG }: NodeJS.ProcessEnv): string {
  const [, language, region] = /^([a-z]{2,3})(?:_([A-Z]{2}))?(?:[.@]|$)/.exec(LC_ALL || LC_MESSAGES || LANG || '') ?? []
  return language ? [language, region].filter(Boolean).join('-') : 'en-US'
}

async function signRequest(
  { baseUrl, ...credentials }: Access,
  method: string,
  target: string,
  body: Buffer | undefined,
  locale: string,
): Promise<SignedRequest> {
  const bytes = body ?? Buffer.alloc(0)
  const signed = await signedHeaders(credentials, { method, target, body: bytes })
  const message = canonicalMessage({
    method,
    path: target.split('?', 1)[0]!,
    timestamp: signed['X-Timestamp'],
    nonce: signed['X-Nonce'],
    bodyHash: await bodyHash(bytes),
  })
  const headers = {
    ...signed,
    ...(locale ? { 'X-LOCALE': locale } : {}),
    ...(body ? { 'Content-Type': 'application/json' } : {}),
    ...(body || method === 'POST' ? { 'Content-Length': String(bytes.length) } : {}),
  }
  return { url: new URL(baseUrl), method, message, headers, body: bytes }
}

/** Sends the target as it was typed. A URL parser would normalize dots and encodings, and so break the signature. */
function send({ url, method, headers, body }: SignedRequest, target: string): Promise<Answer> {
  const start = url.protocol === 'https:' ? requestHttps : requestHttp
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const request = start(url, { method, path: target, headers, signal: AbortSignal.timeout(timeoutMs) }, response => {
    const status = `${response.statusCode} ${response.statusMessage}`
    readText(response).then(text => resolve({ status, headers: response.headers, body: text }), reject)
  })
  request.on('error', reject)
  request.end(body)
  return promise.catch(error => {
    throw new Error(describe(error, url.origin), { cause: error })
  })
}

function describe(error: NodeJS.ErrnoException, origin: string): string {
  if (error.name === 'AbortError' || error.name === 'TimeoutError')
    return `${origin} did not answer within ${timeoutMs / 1000} s: check the log of the gateway.`
  if (error.code === 'ECONNREFUSED')
    return `Nothing listens at ${origin}: start the service with npm start, or correct the URL.`
  return `${origin} did not answer (${error.message}): check whether a gateway listens there.`
}

/** Prints the signed message and the headers, without the secret. With --json they go to standard error. */
function showRequest({ method, message, headers }: SignedRequest, json: boolean): void {
  const lines = [
    'Canonical message (five lines joined by LF, none at the end):',
    ...message.split('\n').map(line => `  ${line}`),
    `Body hash: ${message.slice(message.lastIndexOf('\n') + 1)}`,
    `Headers of the ${method}:`,
    ...Object.entries(headers).map(([name, value]) => `  ${name}: ${value}`),
    '',
  ]
  const print = json ? console.error : console.log
  print(lines.join('\n'))
}

/** Prints the response. Returns whether it reports success. */
function show({ status, headers, body }: Answer, { json, verbose }: Given): boolean {
  const envelope = parseEnvelope(body)
  if (!envelope) throw new Error(`The response (${status}) is not one of this service: check the URL.`)
  if (json) {
    console.log(body)
    return envelope.success
  }
  console.log(status)
  if (verbose) for (const [name, value] of Object.entries(headers)) console.log(`  ${name}: ${value}`)
  console.log(JSON.stringify(envelope, null, 2))
  return envelope.success
}

function parseEnvelope(body: string): { success: boolean } | undefined {
  try {
    const envelope = JSON.parse(body) as { success?: unknown } | null
    return typeof envelope?.success === 'boolean' ? (envelope as { success: boolean }) : undefined
  } catch {
    return undefined
  }
}

// A reader such as head may close the pipe before everything is written.
process.stdout.on('error', () => process.exit())
await runProgram(
  createCommand({
    name: 'npm run call --',
    help: 'sign a request to the public API, send it and print the response',
    words: {
      METHOD: 'the HTTP method, such as GET',
      PATH: 'the path with its query string, such as /api/v1/wallets?size=5',
    },
    flags,
    examples: [
      'GET /api/v1/wallets',
      "GET '/api/v1/wallets?page=0&size=5&sort=createdAt,desc' --verbose",
      `POST /api/v1/transfer/command/create \\
    --body '{"sourceWalletId":"wal_…","targetWalletId":"wal_…","amount":"1.00","currency":"USD","bizId":"rent-1"}'`,
      `POST /api/v1/hold/command/create \\
    --body '{"walletId":"wal_…","amount":"50.00","currency":"USD","expiresInSeconds":3600,"bizId":"booking-1"}'`,
      `POST /api/v1/transfer/command/reverse \\
    --body '{"reversesTransferId":"rent-1","amount":"1.00","currency":"USD","bizId":"refund-1"}'`,
      "GET '/api/v1/event/query/events/0?type=transfer.completed&size=10'",
      'GET /api/v1/wallets --key ak_… --base-url https://wallet.example.com   (with the secret in API_SECRET)',
    ],
    notes: `The demo is the one that npm start creates in DATA_DIR (default: .data in the checkout). Its key has every scope. docs/guides has more
examples, and docs/api.md has one for each endpoint.

The exit code is 0 if the response reports success, 1 if it does not or if there is none, and 2 if the command line is
invalid. npm run --silent call suppresses npm's own output.`,
    run: call,
  }),
  process.argv.slice(2),
)
