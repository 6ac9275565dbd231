/** Runs `npm run call` as its users do: in a separate process, against a running service. */
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startSystem } from '../test/setup/system.ts'
import { makeTempDir } from '../test/setup/temp.ts'

interface Ran {
  exitCode: number
  stdout: string
  stderr: string
}

const script = fileURLToPath(new URL('./call.ts', import.meta.url))
const dataDir = await makeTempDir('call')
const system = await startSystem()
const { baseUrl, apiKey, apiSecret, wallets } = system
const createPath = '/api/v1/transfer/command/create'

beforeAll(() => writeFile(join(dataDir, 'demo.json'), JSON.stringify({ baseUrl, apiKey, apiSecret, wallets })))
afterAll(() => system.stop())

function run(args: string[], environment: NodeJS.ProcessEnv = {}, input = ''): Promise<Ran> {
  const { promise, resolve } = Promise.withResolvers<Ran>()
  const { PATH, NODE_COMPILE_CACHE } = process.env
  const env = { PATH, NODE_COMPILE_CACHE, DATA_DIR: dataDir, ...environment }
  const child = execFile(process.execPath, [script, ...args], { env }, (error, stdout, stderr) => {
    resolve({ exitCode: error ? Number(error.code) : 0, stdout, stderr })
  })
  child.stdin?.end(input)
  return promise
}

function order(bizId: string): string {
  const [source, target] = wallets
  // Whitespace and escapes that a JSON serializer would write differently.
  return `{ "sourceWalletId": "${source?.walletId}",  "targetWalletId":"${target?.walletId}", "amount":"1.50","currency":"USD", "bizId":"${bizId}", "remark":"caf\\u00e9 ☕ 🚀"}`
}

async function codeOf(args: string[], environment: NodeJS.ProcessEnv = {}, input = ''): Promise<string> {
  const { stdout } = await run([...args, '--json'], environment, input)
  return JSON.parse(stdout).code
}

function sentence(exitCode: number, ran: Ran): string {
  expect(ran).toMatchObject({ exitCode, stdout: '' })
  expect(ran.stderr).toMatch(/^\S[^\n]*[.?]\n$/)
  return ran.stderr.trimEnd()
}

describe('with the demo of npm start', () => {
  test('a GET prints the status and the response', async () => {
    const { exitCode, stdout, stderr } = await run(['GET', '/api/v1/wallets?size=2&sort=createdAt,asc'])
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    const [status, ...lines] = stdout.split('\n')
    expect(status).toBe('200 OK')
    const answer = JSON.parse(lines.join('\n'))
    expect(answer).toMatchObject({ success: true, code: '2000', data: { page: { size: 2, totalElements: 3 } } })
    expect(stdout).toContain('\n  "code": "2000",\n')
  })

  test('--json prints the body of the response and nothing else', async () => {
    const { exitCode, stdout, stderr } = await run(['get', '/api/v1/wallets', '--json'])
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(stdout).toMatch(/^\{[^\n]*\}\n$/)
    expect(JSON.parse(stdout)).toMatchObject({ success: true, data: { page: { totalElements: 3 } } })
  })

  test('a body is sent unchanged, from the command line, a file or standard input', async () => {
    expect(await codeOf(['POST', createPath, '--body', order('by-flag')])).toBe('2000')
    const file = join(dataDir, 'order.json')
    await writeFile(file, `${order('by-file')}\r\n`)
    expect(await codeOf(['POST', createPath, '--body-file', file])).toBe('2000')
    expect(await codeOf(['POST', createPath, '--body-file', '-'], {}, order('by-stdin'))).toBe('2000')
    for (const bizId of ['by-flag', 'by-file', 'by-stdin'])
      expect(await codeOf(['GET', `/api/v1/transfer/query/orders/${bizId}`])).toBe('2000')
    // Without a body there is no Content-Type; with an empty one there is.
    expect(await codeOf(['POST', createPath])).toBe('S015')
    expect((await run(['POST', createPath])).stderr).toBe('The request had no body: add --body or --body-file.\n')
    expect(await codeOf(['POST', createPath, '--body', ''])).toBe('S012')
  })

  // Step 6 of section 5.3 precedes routing: any code except GA2012 shows that the signature was valid.
  test.each([
    ['/api/v1/transfer/query/orders/caf%C3%A9%20', 'T001'],
    ['/api/v1/../v1//wallets/./', '50090201'],
    ['/api/v1/wallets?', '2000'],
    ['/api/v1/wallets/wal%2f1', '50090201'],
  ])('a path is signed and sent as it was typed: %s', async (path, code) => {
    expect(await codeOf(['GET', path])).toBe(code)
  })

  test('--verbose prints what was signed and sent, without the secret', async () => {
    const body = order('verbose')
    const { exitCode, stdout, stderr } = await run(['POST', createPath, '--body', body, '--verbose'])
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    const [, timestamp, nonce, hash] =
      /^ {2}POST\n {2}\S+create\n {2}(\d{10})\n {2}(\S{36})\n {2}([0-9a-f]{64})$/m.exec(stdout) ?? []
    expect(stdout).toContain(`Body hash: ${hash}\n`)
    for (const header of [`X-Api-Key: ${apiKey}`, `X-Timestamp: ${timestamp}`, `X-Nonce: ${nonce}`])
      expect(stdout).toContain(`\n  ${header}\n`)
    expect(stdout).toMatch(/^ {2}X-Signature: [A-Za-z0-9+/]{43}=$/m)
    expect(stdout).toMatch(/^ {2}x-request-id: \S+$/m)
    expect(stdout).not.toContain(apiSecret)

    const apart = await run(['GET', '/api/v1/wallets', '--verbose', '--json'])
    expect(JSON.parse(apart.stdout)).toMatchObject({ success: true })
    expect(apart.stderr).toContain('Canonical message')
    expect(apart.stderr).not.toContain(apiSecret)
  })
})

test('flags override the environment, which overrides the demo', async () => {
  const issued = await system.admin.apiKeys.create.mutate({
    workspaceId: system.workspaceId,
    ownerUserId: 'owner',
    scopes: ['transfer:read'],
  })
  const wanted = ['GET', '/api/v1/wallets']
  // This key lacks the scope wallet:read, so GA2024 shows that it was used instead of the demo's.
  expect(await codeOf([...wanted, '--key', issued.apiKey, '--secret', issued.apiSecret])).toBe('GA2024')
  const environment = { API_KEY: issued.apiKey, API_SECRET: issued.apiSecret }
  expect(await codeOf(wanted, environment)).toBe('GA2024')
  expect(await codeOf([...wanted, '--key', issued.apiKey], { API_SECRET: issued.apiSecret })).toBe('GA2024')
  expect(await codeOf([...wanted, '--key', apiKey, '--secret', apiSecret], environment)).toBe('2000')
  const nowhere = { DATA_DIR: '/nonexistent', ...environment }
  expect(await codeOf([...wanted, '--base-url', `${baseUrl}/`], nowhere)).toBe('GA2024')
  expect(await codeOf(wanted, { ...nowhere, BASE_URL: baseUrl })).toBe('GA2024')
})

test("an error response exits with 1, and gives the reason in the user's language", async () => {
  const wrong = ['GET', '/api/v1/wallets', '--key', apiKey, '--secret', 'wrong']
  const plain = await run(wrong)
  expect(plain).toMatchObject({ exitCode: 1, stderr: '' })
  expect(plain.stdout).toMatch(/^401 Unauthorized\n\{\n/)
  expect(plain.stdout).toContain('"code": "GA2012"')
  const english = /"detail": "[\x20-\x7e]+"/
  const chinese = /"detail": "[^"]*\p{Script=Han}/u
  expect(plain.stdout).toMatch(english)
  expect((await run(wrong, { LANG: 'C.UTF-8' })).stdout).toMatch(english)
  expect((await run(wrong, { LANG: 'zh_CN.UTF-8' })).stdout).toMatch(chinese)
  expect((await run(wrong, { LANG: 'zh_CN.UTF-8', LC_ALL: 'en_US.UTF-8' })).stdout).toMatch(english)
  expect((await run([...wrong, '--locale', 'zh-CN'], { LANG: 'en_US.UTF-8' })).stdout).toMatch(chinese)
})

describe('an invalid call fails with one sentence', () => {
  test.each([
    [['GET'], "Missing required argument 'PATH': the path with its query string, such as /api/v1/wallets?size=5."],
    [
      ['/api/v1/wallets'],
      "Missing required argument 'PATH': the path with its query string, such as /api/v1/wallets?size=5.",
    ],
    [['/api/v1/wallets', 'GET'], '"/api/v1/wallets" is not an HTTP method: put one, such as GET, before the path.'],
    [['--verbose'], "Missing required argument 'METHOD': the HTTP method, such as GET."],
    [['GET', 'api/v1/wallets'], '"api/v1/wallets" is not a path: begin it with a slash, such as /api/v1/wallets.'],
    [
      ['GET', '/api/v1/wallets?name=a b'],
      'The path has a space or a non-ASCII character: percent-encode it, for example %20 for a space.',
    ],
    [
      ['GET', '/a', '/b'],
      'Too many arguments. Expected 2 arguments but got 3: GET, /a, /b. Remove the extra words, or quote a value that contains spaces.',
    ],
    [['POST', '/a', '--bdy', '{}'], "Unknown option '--bdy': did you mean --body?"],
    [['POST', '/a', '--body', '{}', '--body-file', 'x'], '--body and --body-file are both given: remove one of them.'],
    [
      ['GET', '/a', '--base-url', 'localhost'],
      '--base-url must be a URL without a path, such as http://127.0.0.1:8080, not "localhost".',
    ],
  ])('%j', async (args, expected) => {
    expect(sentence(2, await run(args))).toBe(expected)
  })

  test('at run time', async () => {
    const wanted = ['GET', '/api/v1/wallets']
    expect(sentence(1, await run(wanted, { DATA_DIR: '/nonexistent' }))).toContain('start the service with npm start')
    expect(sentence(1, await run([...wanted, '--key', apiKey]))).toBe(
      'The API key is set without its secret: set API_SECRET.',
    )
    expect(sentence(1, await run(wanted, { API_SECRET: 'x' }))).toContain('without its key')
    expect(sentence(1, await run(wanted, { BASE_URL: 'http://x/y' }))).toContain(
      'BASE_URL must be a URL without a path',
    )
    expect(sentence(1, await run([...wanted, '--base-url', 'http://127.0.0.1:1']))).toContain('Nothing listens at')
    expect(sentence(1, await run([...wanted, '--base-url', system.coreUrl]))).toContain('is not one of this service')
    expect(sentence(1, await run(['POST', '/a', '--body-file', '/nonexistent']))).toContain('Cannot read the body')
  })
})

test('the help lists every flag and warns about secrets on the command line', async () => {
  const [bare, asked] = await Promise.all([run([]), run(['--help'])])
  expect(bare).toEqual({ ...asked, exitCode: 2 })
  expect(asked).toMatchObject({ exitCode: 0, stderr: '' })
  for (const flag of ['body', 'body-file', 'key', 'secret', 'base-url', 'locale', 'verbose', 'json', 'help'])
    expect(asked.stdout).toMatch(new RegExp(`^  (-h, )?--${flag}\\b.*  \\S`, 'm'))
  expect(asked.stdout).toContain('process list')
})
