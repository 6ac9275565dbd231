/** Runs the example clients as their users do, against a running service. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { startSystem } from '../test/setup/system.ts'

interface Ran {
  exitCode: number
  stdout: string
  stderr: string
}

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const clients = [
  { name: 'Python', program: 'python3', script: here('python/wallet_client.py') },
  { name: 'curl', program: 'sh', script: here('curl/transfer.sh') },
]

const system = await startSystem()
const demoFile = join(await mkdtemp(join(inject('runDir'), 'examples-')), 'demo.json')

beforeAll(async () => {
  const { baseUrl, coreUrl, workspaceId, apiKey, apiSecret, wallets } = system
  const demo = { baseUrl, coreUrl, workspaceId, apiKey, apiSecret, wallets }
  await writeFile(demoFile, `${JSON.stringify(demo, null, 2)}\n`)
})

afterAll(() => system.stop())

function run(program: string, args: string[], environment: NodeJS.ProcessEnv = {}): Promise<Ran> {
  const { promise, resolve, reject } = Promise.withResolvers<Ran>()
  const { PATH, HOME } = process.env
  const env = { PATH, HOME, PYTHONDONTWRITEBYTECODE: '1', ...environment }
  execFile(program, args, { env }, (error, stdout, stderr) => {
    if (error?.code === 'ENOENT') reject(new Error(`The examples are tested with ${program}: install it.`))
    else resolve({ exitCode: error ? Number(error.code) : 0, stdout, stderr })
  })
  return promise
}

async function balances(workspaceId = system.workspaceId, wallets = system.wallets): Promise<string[]> {
  const caller = { requestId: 'test' }
  const found = await Promise.all(
    wallets.map(({ walletId }) => system.admin.wallets.balance.query({ workspaceId, walletId, caller })),
  )
  return found.map(({ balance }) => balance.toFixed())
}

/** Creates a workspace, and the environment for a client of it. */
async function newWorkspace(...wallets: [name: string, currency: string, amount: string][]) {
  const { admin } = system
  const { workspaceId } = await admin.workspaces.create.mutate({ name: 'Test' })
  await admin.members.add.mutate({ workspaceId, userId: 'owner' })
  const scopes = ['wallet:read' as const, 'transfer:read' as const, 'transfer:create' as const]
  const { apiKey, apiSecret } = await admin.apiKeys.create.mutate({ workspaceId, ownerUserId: 'owner', scopes })
  const made: typeof system.wallets = []
  for (const [name, currency, amount] of wallets) {
    const { walletId } = await admin.wallets.create.mutate({ workspaceId, currency, name })
    if (amount !== '0') await admin.wallets.deposit.mutate({ workspaceId, walletId, amount })
    made.push({ walletId, name, currency, balance: amount })
  }
  return {
    workspaceId,
    wallets: made,
    environment: { BASE_URL: system.baseUrl, API_KEY: apiKey, API_SECRET: apiSecret },
  }
}

function expectSentence({ exitCode, stdout, stderr }: Ran, about: RegExp): void {
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
  expect(stderr).toMatch(/^[^\n]+\.\n$/)
  expect(stderr).toMatch(about)
}

describe.each(clients)('$name', ({ program, script }) => {
  test('transfers 1.00 with the demo.json of npm start, and prints the balances', async () => {
    const before = await balances()
    const ran = await run(program, [script, '--demo', demoFile])
    expect({ ...ran, stdout: '' }).toEqual({ exitCode: 0, stdout: '', stderr: '' })
    const after = await balances()
    expect(Number(before[0]) - Number(after[0])).toBe(1)
    expect(Number(after[1]) - Number(before[1])).toBe(1)
    const [main, savings] = system.wallets.map(({ walletId }) => walletId)
    const line = (when: string, wallet: string | undefined, balance: string | undefined) =>
      expect.stringMatching(new RegExp(`^${when} +${wallet} +${Number(balance).toFixed(2)} USD`))
    expect(ran.stdout.trimEnd().split('\n')).toEqual([
      line('before', main, before[0]),
      line('before', savings, before[1]),
      expect.stringMatching(/^moved +1\.00 USD as trf_\w{26}, COMPLETED$/),
      line('after', main, after[0]),
      line('after', savings, after[1]),
    ])
  })

  test('reads key and secret from the environment, and handles hostile names and currencies without decimals', async () => {
    const { workspaceId, wallets, environment } = await newWorkspace(
      ['{"walletId":"wal_x","currency":"JPY"}, [1]', 'EUR', '5'],
      ['Söhne "&" \\ 银行', 'JPY', '500'],
      ['","currency":"EUR', 'JPY', '0'],
    )
    const ran = await run(program, [script], environment)
    expect(ran.stderr).toBe('')
    expect(ran.stdout).toMatch(/^moved +1 JPY as trf_/m)
    expect(await balances(workspaceId, wallets)).toEqual(['5', '499', '1'])
  })

  test('retries after a lost answer, and the money moves once', async () => {
    const { workspaceId, wallets, environment } = await newWorkspace(['A', 'USD', '10'], ['B', 'USD', '0'])
    const proxy = await startLossyProxy(Number(new URL(system.baseUrl).port), 'POST ')
    const ran = await run(program, [script], { ...environment, BASE_URL: proxy.url })
    proxy.close()
    expect(proxy.lost()).toBe(1)
    expect(ran).toMatchObject({ exitCode: 0, stderr: '' })
    expect(await balances(workspaceId, wallets)).toEqual(['9', '1'])
  })

  test('fails with one sentence that names the problem', async () => {
    const { apiKey, apiSecret, baseUrl } = system
    const access = { BASE_URL: baseUrl, API_KEY: apiKey, API_SECRET: apiSecret }
    expectSentence(await run(program, [script]), /BASE_URL.*API_SECRET/)
    expectSentence(await run(program, [script, '--demo', '/nonexistent.json']), /nonexistent.*npm start/)
    expectSentence(await run(program, [script], { ...access, API_SECRET: 'wrong' }), /GA2012 SIGNATURE_INVALID/)
    expectSentence(await run(program, [script], { ...access, API_KEY: 'ak_unknown' }), /GA2011 API_KEY_NOT_FOUND/)
    expectSentence(await run(program, [script], { ...access, BASE_URL: 'http://127.0.0.1:1' }), /did not answer/)
    const lonely = await newWorkspace(['A', 'USD', '1'], ['B', 'EUR', '1'])
    expectSentence(await run(program, [script], lonely.environment), /[Nn]o two .*the same currency/)
  })

  test('reports an insufficient balance, and moves nothing', async () => {
    const { workspaceId, wallets, environment } = await newWorkspace(['A', 'USD', '0.99'], ['B', 'USD', '0'])
    const ran = await run(program, [script], environment)
    expect(ran.exitCode).toBe(1)
    expect(ran.stderr).toMatch(/^[^\n]*T002 INSUFFICIENT_BALANCE[^\n]*\n$/)
    expect(await balances(workspaceId, wallets)).toEqual(['0.99', '0'])
  })
})

/** A TCP proxy that drops the first answer to a request with this prefix: the service has then done its work. */
async function startLossyProxy(port: number, prefix: string) {
  let lost = 0
  const proxy = createServer(client => {
    const server = connect(port, '127.0.0.1')
    let dropsAnswer = false
    client.once('data', data => {
      dropsAnswer = lost === 0 && data.toString('latin1').startsWith(prefix)
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
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    lost: () => lost,
    close: () => proxy.close(),
  }
}
