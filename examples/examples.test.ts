/** Runs the example clients as their users do, against a running service. */
import { execFile } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import { createRequire } from 'node:module'
import { connect, createServer, type Server } from 'node:net'
import { basename, delimiter, dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findPrograms } from '../cli/processes/programs.ts'
import { endpoints } from '../gateway/src/api/endpoints.ts'
import { type Answer, type Credentials, call, createPath, type Envelope } from '../test/setup/client.ts'
import { listen } from '../test/setup/listen.ts'
import { startSystem } from '../test/setup/system.ts'
import { makeTempDir } from '../test/setup/temp.ts'
import { createTenant, createWallet } from '../test/setup/workspaces.ts'

interface Ran {
  exitCode: number
  stdout: string
  stderr: string
}

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const vectorsFile = here('../test/vectors/signing.json')
const system = await startSystem()
const directory = await makeTempDir('examples')

/** A language, the program that runs its client, and what to compile before. */
interface Language {
  name: string
  names: string[]
  aptPackage: string
  file: string
  /** How `createTransfer` sends the bizId, and what makes it send none. */
  bizId: [text: string, replacement: string]
  /** Returns the command line of a client. `directory` is for what is compiled. */
  prepare(program: string, file: string, directory: string): Promise<string[]> | string[]
}

const prepare = (program: string, file: string) => [program, file]
const languages: Language[] = [
  {
    name: 'Python',
    names: ['python3'],
    aptPackage: 'python3',
    file: 'python/wallet_client.py',
    bizId: ['body={**body, "bizId": biz_id or str(uuid.uuid4())}', 'body=body'],
    prepare,
  },
  {
    name: 'shell',
    names: ['sh'],
    aptPackage: 'dash',
    file: 'shell/wallet_client.sh',
    bizId: [String.raw`,\"bizId\":\"$5\"`, ''],
    prepare,
  },
  {
    name: 'PHP',
    names: ['php'],
    aptPackage: 'php-cli',
    file: 'php/wallet_client.php',
    bizId: ["'bizId' => $bizId ?? bin2hex(random_bytes(16)),", ''],
    prepare,
  },
  {
    name: 'Ruby',
    names: ['ruby'],
    aptPackage: 'ruby',
    file: 'ruby/wallet_client.rb',
    bizId: [', bizId: biz_id }', ' }'],
    prepare,
  },
  {
    name: 'Go',
    names: ['go'],
    aptPackage: 'golang-go',
    file: 'go/wallet_client.go',
    bizId: [', "bizId": bizID,', ','],
    async prepare(go, file, directory) {
      const client = join(directory, 'wallet_client')
      // With the cache of the user: the first build compiles the standard library.
      const env = { HOME: directory, ...process.env, CGO_ENABLED: '0', GOPROXY: 'off', GOTOOLCHAIN: 'local' }
      await promisify(execFile)(go, ['build', '-o', client, file], { env })
      return [client]
    },
  },
  {
    // A runtime without the compiler cannot run source files.
    name: 'Java',
    names: ['javac'],
    aptPackage: 'default-jdk-headless',
    file: 'java/WalletClient.java',
    bizId: [', "bizId", bizId)', ')'],
    async prepare(javac, file, directory) {
      await promisify(execFile)(javac, ['-d', directory, file])
      return [join(dirname(javac), 'java'), '-XX:TieredStopAtLevel=1', '-cp', directory, 'WalletClient']
    },
  },
]

const commands = new Map<string, string[]>()
const programs = new Map<string, string>()

beforeAll(async () => {
  // The client in shell needs the last two.
  const more = ['curl', 'openssl'].map(name => ({ names: [name], aptPackage: name }))
  const paths = await findPrograms([...languages, ...more])
  await Promise.all(
    languages.map(async ({ name, file, prepare }, index) => {
      programs.set(name, paths[index]!)
      commands.set(name, await prepare(paths[index]!, here(file), directory))
    }),
  )
})

afterAll(() => system.stop())

function execute(command: string[], environment: NodeJS.ProcessEnv): Promise<Ran> {
  const { promise, resolve } = Promise.withResolvers<Ran>()
  const { PATH, HOME = directory } = process.env
  const env = { PATH, HOME, PYTHONDONTWRITEBYTECODE: '1', ...environment }
  execFile(command[0]!, command.slice(1), { env, cwd: here('..') }, (error, stdout, stderr) =>
    resolve({ exitCode: error ? Number(error.code) : 0, stdout, stderr }),
  )
  return promise
}

type Tenant = Credentials & { workspaceId: string; walletIds: string[] }

/** A workspace with these wallets, and a key for it. */
async function newTenant(...wallets: [name: string, currency: string, amount: string][]): Promise<Tenant> {
  const scopes = ['wallet:read' as const, 'transfer:read' as const, 'transfer:create' as const]
  const tenant = await createTenant(system, { scopes })
  const walletIds: string[] = []
  for (const [name, currency, amount] of wallets) {
    const deposits = amount === '0' ? [] : [amount]
    walletIds.push(await createWallet({ ...system, ...tenant }, { currency, name, deposits }))
  }
  return { ...tenant, walletIds }
}

function environmentOf({ baseUrl, apiKey, apiSecret }: Credentials): NodeJS.ProcessEnv {
  return { BASE_URL: baseUrl, API_KEY: apiKey, API_SECRET: apiSecret }
}

async function balances({ workspaceId, walletIds }: Tenant): Promise<string[]> {
  const caller = { requestId: 'test' }
  const found = await Promise.all(
    walletIds.map(walletId => system.admin.wallets.balance.query({ workspaceId, walletId, caller })),
  )
  return found.map(({ balance }) => balance.toFixed())
}

function expectSentence({ exitCode, stdout, stderr }: Ran, about: RegExp): void {
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
  expect(stderr).toMatch(/^[^\n]+\.\n$/)
  expect(stderr).toMatch(about)
}

describe.concurrent.each(languages)('$name', ({ name, file, bizId, prepare }) => {
  const run = (args: string[], environment: NodeJS.ProcessEnv = {}) =>
    execute([...commands.get(name)!, ...args], environment)

  test('signs the test vectors', async () => {
    const vectors = JSON.parse(await readFile(vectorsFile, 'utf8')) as { signature: string }[]
    const { exitCode, stdout, stderr } = await run(['--vectors', vectorsFile])
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(stdout.trimEnd().split('\n')).toEqual(vectors.map(({ signature }) => signature))
  })

  test('transfers 1.00 as README.md says, with the demo.json of npm start, and prints the balances', async () => {
    const tenant = await newTenant(['Main', 'USD', '1000.00'], ['Savings', 'USD', '250.00'])
    const { baseUrl, apiKey, apiSecret, walletIds } = tenant
    const { coreUrl, wallets } = system
    const demoFile = join(directory, `demo-${name}.json`)
    await writeFile(demoFile, `${JSON.stringify({ baseUrl, coreUrl, apiKey, apiSecret, wallets }, null, 2)}\n`)
    const readme = await readFile(here('README.md'), 'utf8')
    const row = readme.split('\n').find(line => line.startsWith(`| ${name} |`))!
    const [, command] = row.match(/`(.*) \.data\/demo\.json`/)!
    const ran = await execute([...command!.split(' '), demoFile], {})
    expect({ ...ran, stdout: '' }).toEqual({ exitCode: 0, stdout: '', stderr: '' })
    expect(await balances(tenant)).toEqual(['999', '251'])
    const [main, savings] = walletIds
    expect(ran.stdout.trimEnd().split('\n')).toEqual([
      `before  ${main}  1000.00 USD`,
      `before  ${savings}  250.00 USD`,
      expect.stringMatching(/^moved {3}1\.00 USD as trf_\w{26}, COMPLETED$/),
      `after   ${main}  999.00 USD`,
      `after   ${savings}  251.00 USD`,
    ])
  })

  test('reads key and secret from the environment, and handles hostile names and currencies without decimals', async () => {
    const tenant = await newTenant(
      ['{"walletId":"wal_x","currency":"JPY"}, [1]', 'EUR', '5'],
      ['Söhne "&" \\ 银行 😀', 'JPY', '500'],
      ['","currency":"EUR', 'JPY', '0'],
    )
    const ran = await run([], environmentOf(tenant))
    expect(ran.stderr).toBe('')
    expect(ran.stdout).toMatch(/^moved +1 JPY as trf_/m)
    expect(await balances(tenant)).toEqual(['5', '499', '1'])
  })

  test('finds wallets on later pages', async () => {
    const currencies = ['USD', 'EUR', 'GBP', 'CHF', 'SEK', 'NOK', 'NOK']
    const tenant = await newTenant(...currencies.map((currency): [string, string, string] => ['W', currency, '3']))
    const ran = await run([], environmentOf(tenant))
    expect(ran.stderr).toBe('')
    expect(await balances(tenant)).toEqual(['3', '3', '3', '3', '3', '2', '4'])
  })

  test('retries after a lost answer, and the money moves once', async () => {
    const tenant = await newTenant(['A', 'USD', '10'], ['B', 'USD', '0'])
    const proxy = await startLossyProxy(Number(new URL(system.baseUrl).port), 'POST ')
    const ran = await run([], environmentOf({ ...tenant, baseUrl: proxy.url }))
    proxy.close()
    expect(proxy.lost()).toBe(1)
    expect(ran).toMatchObject({ exitCode: 0, stderr: '' })
    expect(await balances(tenant)).toEqual(['9', '1'])
  })

  test('does not send a create without a bizId again, because the money would move twice', async () => {
    const source = await readFile(here(file), 'utf8')
    expect(source).toContain(bizId[0])
    const folder = join(directory, `without-bizId-${name}`)
    await mkdir(folder)
    const changed = join(folder, basename(file))
    await writeFile(changed, source.replace(...bizId))
    const command = await prepare(programs.get(name)!, changed, folder)
    const tenant = await newTenant(['A', 'USD', '10'], ['B', 'USD', '0'])
    const proxy = await startLossyProxy(Number(new URL(system.baseUrl).port), 'POST ')
    const ran = await execute(command, environmentOf({ ...tenant, baseUrl: proxy.url }))
    proxy.close()
    expect(ran).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('outcome is unknown') })
    expect(await balances(tenant)).toEqual(['9', '1'])
  })

  test.each([302, 307])('does not send a signed request to the server that a redirect (%i) names', async status => {
    const elsewhere: unknown[] = []
    const other = createHttpServer((request, response) => response.end(elsewhere.push(request.headers)))
    const otherPort = await listen(other)
    const server = createHttpServer((request, response) =>
      response.writeHead(status, { Location: `http://localhost:${otherPort}${request.url}` }).end(),
    )
    const ran = await run([], environmentOf({ baseUrl: await urlOf(server), apiKey: 'ak_1', apiSecret: 'secret' }))
    for (const each of [server, other]) each.close()
    expectSentence(ran, /did not answer as the wallet service/)
    expect(elsewhere).toEqual([])
  })

  test('does not wait for an hour, and not sign for years ahead, because an answer says so', async () => {
    const times: number[] = []
    const year = 365 * 86_400
    const server = createHttpServer((request, response) => {
      const [isFirst, now] = [times.length === 0, Date.now()]
      times.push(Number(request.headers['x-timestamp']) - now / 1000)
      const [status, code, timestamp] = isFirst ? [401, 'GA2013', now + year * 1000] : [503, 'S002', now]
      response.writeHead(status, { ...(!isFirst && { 'Retry-After': '3600' }) })
      response.end(JSON.stringify({ version: '1.3.0', timestamp, success: false, code, message: 'TEST', data: null }))
    })
    const ran = await run([], environmentOf({ baseUrl: await urlOf(server), apiKey: 'ak_1', apiSecret: 'secret' }))
    server.close()
    expect(ran).toMatchObject({ exitCode: 1, stdout: '', stderr: expect.stringMatching(/^S002 TEST \(HTTP 503/) })
    expect(times.map(ahead => Math.round(Math.abs(ahead) / 3600))).toEqual([0, 24])
  })

  test('corrects its clock, waits as Retry-After says, and signs each retry with a new nonce', async () => {
    const tenant = await newTenant(['A', 'USD', '10'], ['B', 'USD', '0'])
    const service = await startServiceInTheFuture(tenant)
    const ran = await run([], environmentOf({ ...tenant, baseUrl: service.url }))
    service.close()
    expect(ran).toMatchObject({ exitCode: 0, stderr: '' })
    expect(await balances(tenant)).toEqual(['9', '1'])
    const { requests } = service
    expect(requests.filter(({ code }) => code === 'GA2013')).toHaveLength(1)
    expect(new Set(requests.map(({ nonce }) => nonce)).size).toBe(requests.length)
    const [rejected, retried, ...rest] = requests.filter(({ target }) => target === createPath)
    expect([rejected!.code, retried!.code, rest]).toEqual(['S002', '2000', []])
    expect(retried!.body).toBe(rejected!.body)
    expect(retried!.receivedAt - rejected!.receivedAt).toBeGreaterThan(1990)
  })

  test('fails with one sentence that names the problem', async () => {
    const lonely = await newTenant(['A', 'USD', '1'], ['B', 'EUR', '1'])
    const with_ = (changes: Partial<Credentials>) => run([], environmentOf({ ...lonely, ...changes }))
    const failures: [Promise<Ran>, RegExp][] = [
      [run([]), /BASE_URL.*API_SECRET/],
      [run(['--demo', '/nonexistent.json']), /nonexistent.*npm start/],
      [run(['--demo', vectorsFile]), /signing.json.*npm start/],
      [run(['--wrong']), /--demo FILE/],
      [with_({ apiSecret: 'wrong' }), /^GA2012 SIGNATURE_INVALID \(HTTP 401, request \S{10,}\): \S.*\.$/m],
      [with_({ apiKey: 'ak_unknown' }), /GA2011 API_KEY_NOT_FOUND/],
      [with_({ baseUrl: 'http://127.0.0.1:1' }), /^http:\/\/127\.0\.0\.1:1 did not answer/],
      [with_({ baseUrl: 'nonsense' }), /^nonsense did not answer/],
      [with_({ baseUrl: system.coreUrl }), /did not answer as the wallet service/],
      [with_({}), /[Nn]o two .*the same currency/],
    ]
    for (const [ran, about] of failures) expectSentence(await ran, about)
  })

  test('reports an insufficient balance, and moves nothing', async () => {
    const tenant = await newTenant(['A', 'USD', '0.99'], ['B', 'USD', '0'])
    const ran = await run([], environmentOf(tenant))
    expect(ran.exitCode).toBe(1)
    expect(ran.stderr).toMatch(/^T002 INSUFFICIENT_BALANCE[^\n]*\.\n$/)
    expect(await balances(tenant)).toEqual(['0.99', '0'])
  })
})

test('the client in shell shows neither key, signature nor body to other users of the machine', async () => {
  const tenant = await newTenant(['A', 'USD', '10'], ['B', 'USD', '0'])
  const folder = await makeTempDir('seen')
  const seen = join(folder, 'command-lines')
  const paths = (process.env.PATH ?? '').split(delimiter).map(each => join(each, 'curl'))
  await writeFile(
    join(folder, 'curl'),
    `#!/bin/sh\nprintf '%s\\n' "$*" >>'${seen}'\nfor curl in '${paths.join("' '")}'; do [ -x "$curl" ] && exec "$curl" "$@"; done\n`,
    { mode: 0o700 },
  )
  const environment = { ...environmentOf(tenant), PATH: [folder, process.env.PATH].join(delimiter) }
  const ran = await execute(commands.get('shell')!, environment)
  expect(ran).toMatchObject({ exitCode: 0, stderr: '' })
  expect(await balances(tenant)).toEqual(['9', '1'])
  const commandLines = await readFile(seen, 'utf8')
  expect(commandLines).toContain(createPath)
  for (const hidden of [tenant.apiKey, tenant.apiSecret, 'X-Signature', 'amount'])
    expect(commandLines).not.toContain(hidden)
})

describe.concurrent('The Postman collection', () => {
  const require = createRequire(import.meta.url)
  const newman = require.resolve('newman/bin/newman.js')
  const file = here('postman/wallet.postman_collection.json')

  /** Runs a collection several times. Returns the titles of the requests, and what failed. */
  async function runCollection(
    collection: string,
    name: string,
    rounds: number,
  ): Promise<{ requests: string[]; failures: string[] }> {
    const tenant = await createTenant(system)
    for (const [wallet, deposits] of Object.entries({ Main: ['500'], Savings: [], 'Desk USD': [] }))
      await createWallet({ ...system, ...tenant }, { name: wallet, deposits })
    const environment = join(directory, `environment-${name}.json`)
    const values = Object.entries(tenant).map(([key, value]) => ({ key, value }))
    await writeFile(environment, JSON.stringify({ values }))
    const report = join(directory, `report-${name}.json`)
    const options = ['-e', environment, '-n', String(rounds), '-r', 'json', '--reporter-json-export', report]
    const { stderr } = await execute([process.execPath, newman, 'run', collection, ...options], {})
    const text = await readFile(report, 'utf8').catch(() => expect.fail(stderr))
    const { run } = JSON.parse(text) as {
      run: { executions: { item: Item }[]; failures: { source: Item; error: Error }[] }
    }
    return {
      requests: run.executions.map(({ item }) => item.name),
      failures: run.failures.map(({ source, error }) => `${source.name}: ${error.message}`),
    }
  }

  test('has a request for each endpoint, and each succeeds, however often it is run', async () => {
    // More often than the money of one wallet is enough for.
    const rounds = 4
    const { requests, failures } = await runCollection(file, 'all', rounds)
    expect(failures).toEqual([])
    const titles = endpoints.map(({ title }) => title)
    expect(requests.toSorted()).toEqual(
      Array.from({ length: rounds }, () => titles)
        .flat()
        .toSorted(),
    )
  })

  test('sends no signed request to the server that a redirect names', async () => {
    const elsewhere: unknown[] = []
    const other = createHttpServer((request, response) => response.end(elsewhere.push(request.headers)))
    const otherPort = await listen(other)
    const server = createHttpServer((request, response) =>
      response.writeHead(307, { Location: `http://localhost:${otherPort}${request.url}` }).end(),
    )
    const variables = { baseUrl: await urlOf(server), apiKey: 'ak_1', apiSecret: 'secret', walletId: 'wal_1' }
    const flags = Object.entries(variables).flatMap(([name, value]) => ['--env-var', `${name}=${value}`])
    const { exitCode, stdout } = await execute([process.execPath, newman, 'run', file, ...flags], {})
    for (const each of [server, other]) each.close()
    expect(exitCode).toBe(1)
    expect(stdout).toContain('307 Temporary Redirect')
    expect(elsewhere).toEqual([])
  })

  test('signs the path and the body as they are sent, whatever their characters', async () => {
    const collection = JSON.parse(await readFile(file, 'utf8')) as { item: Item[] }
    const find = (title: string) => collection.item.find(({ name }) => name === title)!
    const create = find('Create a transfer order').request.body!
    create.raw = create.raw.replace('{{bizId}}"', '{{bizId}}", "remark": "Café <{{bizId}}> 银行 😀 {{$guid}}"')
    const get = find('Get a transfer order').request.url
    get.path = get.path.map(segment => segment.replace('{{bizId}}', 'Café <{{bizId}}> "银行" 😀 50%25 \u0060'))
    collection.item = ['List wallets', 'Create a transfer order', 'Get a transfer order'].map(find)
    const changed = join(directory, 'changed.json')
    await writeFile(changed, JSON.stringify(collection))
    const { failures } = await runCollection(changed, 'changed', 1)
    const notFound = expect.stringMatching(/^Get a transfer order: T001 TRANSFER_NOT_FOUND/)
    expect(failures).toEqual([notFound])
  })
})

const urlOf = async (server: Server) => `http://127.0.0.1:${await listen(server)}`

/** A TCP proxy that drops the first answer to a request with this prefix: the service has then done its work. */
async function startLossyProxy(port: number, prefix: string) {
  let lost = 0
  const proxy = createServer(client => {
    const server = connect(port, '127.0.0.1')
    let dropsAnswer = false
    client.on('data', data => {
      dropsAnswer = lost === 0 && (dropsAnswer || data.toString('latin1').startsWith(prefix))
    })
    server.on('data', data => {
      if (!dropsAnswer) return client.write(data)
      lost++
      client.destroy()
    })
    client.pipe(server)
    for (const end of [client, server]) end.on('error', () => {})
    client.once('close', () => server.destroy())
    server.once('close', () => client.end())
  })
  return { url: await urlOf(proxy), lost: () => lost, close: () => proxy.close() }
}

/** The parts of a request in a Postman collection that the tests change. */
interface Item {
  name: string
  request: { url: { path: string[] }; body?: { raw: string } }
}

interface Received {
  target: string
  body: string
  nonce: string
  /** In milliseconds. */
  receivedAt: number
  code: string
}

/** The service with a clock that is an hour ahead. It rejects the first create, with Retry-After: 2. */
async function startServiceInTheFuture(credentials: Credentials) {
  const aheadMs = 3_600_000
  const requests: Received[] = []

  function failure(status: number, code: string, headers: Record<string, string> = {}): Answer {
    const timestamp = Date.now() + aheadMs
    const body: Envelope = { version: '1.3.0', timestamp, success: false, code, message: 'TEST', data: null }
    return { status, headers: new Headers(headers), body }
  }

  async function answer(method: string, target: string, body: string, timestamp: string): Promise<Answer> {
    if (Math.abs(Number(timestamp) * 1000 - Date.now() - aheadMs) > 60_000) return failure(401, 'GA2013')
    const isFirstCreate = target === createPath && requests.every(request => request.target !== createPath)
    if (isFirstCreate) return failure(503, 'S002', { 'Retry-After': '2' })
    return call(credentials, method, target, body || undefined)
  }

  const server = createHttpServer(async (request, response) => {
    const receivedAt = performance.now()
    const { method, url: target } = request as { method: string; url: string }
    const { 'x-timestamp': timestamp, 'x-nonce': nonce } = request.headers as Record<string, string>
    const body = await text(request)
    const { status, headers, body: envelope } = await answer(method, target, body, timestamp!)
    requests.push({ target, body, nonce: nonce!, receivedAt, code: envelope.code })
    const retryAfter = headers.get('Retry-After')
    response.writeHead(status, { 'Content-Type': 'application/json', ...(retryAfter && { 'Retry-After': retryAfter }) })
    response.end(JSON.stringify(envelope))
  })
  return { url: await urlOf(server), requests, close: () => server.close() }
}
