import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { scopes } from '@workspace-wallet/contract'
import { createCoreClient } from '@workspace-wallet/core-client'
import type { Client } from 'pg'
import { afterEach, expect, test } from 'vitest'
import { call, createPath } from '../test/setup/client.ts'
import { connect } from '../test/setup/database.ts'
import { startReceiver } from '../test/setup/receiver.ts'
import { mountSmallDisk } from '../test/setup/small-disk.ts'
import { makeTempDir } from '../test/setup/temp.ts'
import { until } from '../test/setup/until.ts'
import { describeProcess, userOf } from './processes/processes.ts'

const script = fileURLToPath(new URL('start.ts', import.meta.url))
const root = fileURLToPath(new URL('..', import.meta.url))
const started: Omit<Started, 'demo'>[] = []
afterEach(async () => {
  for (const each of started.splice(0)) await each.stop()
})

type Demo = {
  baseUrl: string
  coreUrl: string
  workspaceId: string
  apiKey: string
  apiSecret: string
  wallets: { walletId: string; currency: string; balance: string }[]
}
type Started = { child: ChildProcess; output: () => string; demo: Demo; stop: () => Promise<number | null> }

const { PATH, HOME, NODE_COMPILE_CACHE } = process.env

function launch(dataDir: string): Omit<Started, 'demo'> {
  const child = spawn(process.execPath, [script], {
    env: { PATH, HOME, NODE_COMPILE_CACHE, DATA_DIR: dataDir, GATEWAY_PORT: '0', CORE_PORT: '0' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => (output += chunk))
  const exited = once(child, 'exit')
  const stop = async () => {
    if (child.exitCode === null) child.kill('SIGINT')
    await exited
    return child.exitCode
  }
  const launched = { child, output: () => output, stop }
  started.push(launched)
  return launched
}

async function start(dataDir: string): Promise<Started> {
  const launched = launch(dataDir)
  await until('npm start is ready', () => {
    if (launched.child.exitCode !== null) throw new Error(`npm start exited:\n${launched.output()}`)
    return launched.output().includes('Ctrl-C stops everything')
  })
  return { ...launched, demo: JSON.parse(await readFile(join(dataDir, 'demo.json'), 'utf8')) }
}

/** The pid of a program, from the last line of its log. Waits for it, because log lines are buffered. */
function pidOf(dataDir: string, name: string): Promise<number> {
  return until(`the log of ${name} contains its pid`, async () => {
    const log = await readFile(join(dataDir, 'logs', `${name}.log`), 'utf8')
    return Number([...log.matchAll(/"pid":(\d+)/g)].at(-1)?.[1])
  })
}

test('the first start creates a demo that can make transfers, and a restart keeps everything', async () => {
  const dataDir = await makeTempDir('start')
  const first = await start(dataDir)
  const [source, target] = first.demo.wallets.filter(({ currency }) => currency === 'USD')
  expect((await stat(join(dataDir, 'demo.json'))).mode & 0o777).toBe(0o600)
  expect((await stat(join(dataDir, 'secrets.json'))).mode & 0o777).toBe(0o600)
  expect(first.output()).toContain(first.demo.apiSecret)

  // The printed call can be pasted into a shell.
  const [line = ''] = /^DATA_DIR=.* npm run call .*$/m.exec(first.output()) ?? []
  // Vitest sets BASE_URL, which npm run call reads.
  const env = { ...process.env, BASE_URL: undefined, API_KEY: undefined, API_SECRET: undefined }
  const answer = spawnSync('bash', ['-c', line], { encoding: 'utf8', cwd: root, env })
  expect(answer.stdout, answer.stderr).toContain('200 OK')
  expect(answer.stdout).toContain(source!.walletId)

  const order = {
    sourceWalletId: source!.walletId,
    targetWalletId: target!.walletId,
    amount: '100.50',
    currency: 'USD',
    bizId: 'first-order',
  }
  const nonce = 'used-before-the-restart'
  const created = await call(first.demo, 'POST', createPath, order, { nonce })
  expect(created.body.code).toBe('2000')
  expect(await first.stop()).toBe(0)

  const second = await start(dataDir)
  expect(second.demo.wallets).toEqual(first.demo.wallets)
  expect(second.output()).not.toContain(second.demo.apiSecret)
  const balance = await call(second.demo, 'GET', `/api/v1/wallets/${source!.walletId}/balance`)
  expect(balance.body.data.balance).toBe('899.50')
  // Nonces and orders survive the restart.
  expect((await call(second.demo, 'POST', createPath, order, { nonce })).body.code).toBe('GA2013')
  expect((await call(second.demo, 'POST', createPath, order)).body.data).toEqual(created.body.data)

  const { adminToken } = JSON.parse(await readFile(join(dataDir, 'core.json'), 'utf8'))
  const admin = createCoreClient({ url: second.demo.coreUrl, token: adminToken })
  const { keys } = await admin.apiKeys.list.query({ workspaceId: second.demo.workspaceId })
  expect(keys).toEqual([expect.objectContaining({ apiKey: second.demo.apiKey, scopes: [...scopes] })])
  await admin.close()
})

test('a webhook on this machine gets its events, signed, also after a restart', async () => {
  const dataDir = await makeTempDir('start')
  const first = await start(dataDir)
  const receiver = await startReceiver()
  const url = receiver.url.replace('127.0.0.1', 'localhost')
  const created = await call(first.demo, 'POST', '/api/v1/webhook/command/create', { url, bizId: 'local' })
  expect(created.body.code).toBe('2000')
  receiver.secrets.push(created.body.data.secret)
  const [source, target] = first.demo.wallets.filter(({ currency }) => currency === 'USD')
  const order = { sourceWalletId: source!.walletId, targetWalletId: target!.walletId, amount: '1.00', currency: 'USD' }
  const delivered = async ({ demo }: Started, bizId: string) => {
    expect((await call(demo, 'POST', createPath, { ...order, bizId })).body.code).toBe('2000')
    await until('the event arrives', () => receiver.received.at(-1)?.event.data?.transfer?.bizId === bizId)
  }
  await delivered(first, 'before')
  expect(await first.stop()).toBe(0)
  await delivered(await start(dataDir), 'after')
  expect(receiver.forged).toEqual([])
  await receiver.stop()
})

test('core, courier, gateway and PostgreSQL are restarted when they are killed', async () => {
  const dataDir = await makeTempDir('start')
  const { demo } = await start(dataDir)
  const path = `/api/v1/wallets/${demo.wallets[0]!.walletId}/balance`
  const isServed = async () => {
    const answer = await call(demo, 'GET', path).catch(() => null)
    return answer?.body.code === '2000'
  }
  const postmaster = Number((await readFile(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8')).split('\n')[0])
  for (const pid of [
    await pidOf(dataDir, 'core'),
    await pidOf(dataDir, 'courier'),
    await pidOf(dataDir, 'gateway'),
    postmaster,
  ]) {
    expect(pid).toBeGreaterThan(1)
    process.kill(pid, 'SIGKILL')
    await until('the process is gone', async () => (await describeProcess(pid)) === undefined)
    await until('the service is back', isServed)
  }
})

test('continues and stops cleanly when its output is closed, and its log has every line with its time', async () => {
  const dataDir = await makeTempDir('start')
  const each = await start(dataDir)
  each.child.stdout!.destroy()
  each.child.stderr!.destroy()
  const logFile = join(dataDir, 'logs', 'supervisor.log')
  let killed = 0
  for (let count = 1; count <= 2; count++) {
    killed = await until('the log contains a new pid', async () => {
      const pid = await pidOf(dataDir, 'gateway')
      return pid !== killed && pid
    })
    process.kill(killed, 'SIGKILL')
    await until(
      'the gateway runs again',
      async () => (await readFile(logFile, 'utf8')).split('gateway is running again').length > count,
    )
  }
  expect(await each.stop()).toBe(0)
  const lines = (await readFile(logFile, 'utf8')).trimEnd().split('\n')
  for (const line of lines) expect(line).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z \S/)
  expect(lines.map(line => line.slice(25))).toEqual([
    expect.stringMatching(/^Creating a database in /),
    'PostgreSQL is running',
    'Migrating the database',
    'core is running',
    'courier is running',
    'gateway is running',
    expect.stringMatching(/^gateway exited unexpectedly \(SIGKILL\); restarting it in \d+ ms$/),
    'gateway is running again',
    expect.stringMatching(/^gateway exited unexpectedly \(SIGKILL\); restarting it in \d+ ms$/),
    'gateway is running again',
    'Stopping …',
  ])
  expect(lines.join()).not.toContain(each.demo.apiSecret)
})

/** A connection as the superuser of the embedded database. */
async function connectAsSuperuser(dataDir: string): Promise<Client> {
  const { postgresPort } = JSON.parse(await readFile(join(dataDir, 'running.json'), 'utf8'))
  const { superuserPassword } = JSON.parse(await readFile(join(dataDir, 'secrets.json'), 'utf8'))
  return connect(`postgresql://postgres:${superuserPassword}@127.0.0.1:${postgresPort}/wallet`)
}

test('the superuser of the database can read keys only if the first start says so, and never as root here', async () => {
  const dataDir = await makeTempDir('start')
  const first = await start(dataDir)
  const secrets: Record<string, string> = JSON.parse(await readFile(join(dataDir, 'secrets.json'), 'utf8'))
  const keys = ['ledgerChainKey', 'keyEncryptionKeys', 'receiptKeys', 'gatewayToken', 'courierToken', 'adminToken']
  const superuser = await connectAsSuperuser(dataDir)
  const pids = await Promise.all(['core', 'courier', 'gateway'].map(name => pidOf(dataDir, name)))
  const files = ['secrets.json', 'core.json', 'demo.json', 'nonces/nonces.db'].map(name => join(dataDir, name))
  await superuser.query('create temporary table line (text text)')
  let found = ''
  for (const path of [...pids.map(pid => `/proc/${pid}/environ`), ...files])
    for (const sql of [
      `insert into line select convert_from(pg_read_binary_file('${path}'), 'LATIN1')`,
      `copy line from program 'tr "\\000\\\\" " " < ${path}' with (encoding 'LATIN1')`,
    ])
      await superuser.query(sql).catch((error: Error) => {
        expect(error.message).toMatch(/[Pp]ermission denied|program ".*" failed|invalid byte sequence/)
      })
  for (const { text } of (await superuser.query('select text from line')).rows) found += text
  // What the superuser may read is found this way.
  await superuser.query(`insert into line select pg_read_file('${join(dataDir, 'postgres', 'PG_VERSION')}')`)
  expect((await superuser.query('select from line')).rowCount).toBeGreaterThan(0)
  await superuser.end()
  const leaked = keys.filter(name => found.includes(secrets[name]!))
  const isSaid = first.output().includes('can read the keys of the service')
  expect(leaked.length > 0).toBe(isSaid)
  expect(isSaid).toBe(process.getuid!() !== 0)
  // It is said once.
  expect(await first.stop()).toBe(0)
  expect((await start(dataDir)).output()).not.toContain('can read the keys of the service')
})

test('if core cannot start because of its data, PostgreSQL keeps running for the repair', async () => {
  const dataDir = await makeTempDir('start')
  const { stop } = await start(dataDir)
  expect(await stop()).toBe(0)
  const secretsFile = join(dataDir, 'secrets.json')
  const secrets = JSON.parse(await readFile(secretsFile, 'utf8'))
  const lost = { ...secrets, keyEncryptionKeys: `k2:${Buffer.alloc(32, 7).toString('base64')}` }
  await writeFile(secretsFile, JSON.stringify(lost))

  const failed = launch(dataDir)
  const said = await until('the repair is explained', () => {
    if (failed.child.exitCode !== null) throw new Error(`npm start exited:\n${failed.output()}`)
    return failed.output().includes('Ctrl-C') && failed.output()
  })
  expect(said).toContain('KEY_ENCRYPTION_KEYS lacks k1')
  const [url] = /postgresql:\/\/postgres@127\.0\.0\.1:\d+\/wallet/.exec(said) ?? []
  expect(said).toContain(`superuserPassword in ${secretsFile}`)
  expect(said).not.toContain(secrets.superuserPassword)
  // What docs/operations.md says for a lost key.
  const superuser = await connect(url!.replace('postgres@', `postgres:${secrets.superuserPassword}@`))
  const handbook = await readFile(new URL('../docs/operations.md', import.meta.url), 'utf8')
  const [, sql] = /```sql\n(\s+update api_key\s[^`]*)```/.exec(handbook)!
  await superuser.query(sql!.replaceAll(`'lost'`, `'k1'`))
  await superuser.end()
  expect(await failed.stop()).toBe(1)
  await start(dataDir)
})

test('a forged row in the database does not keep npm start from starting', async () => {
  const dataDir = await makeTempDir('start')
  const first = await start(dataDir)
  const superuser = await connectAsSuperuser(dataDir)
  await superuser.query(`
    set role wallet_service;
    insert into api_key select (jsonb_populate_record(k, jsonb_build_object('id', gen_random_uuid(), 'secret', 'v1.lost.a.b.c'))).*
    from api_key k`)
  await superuser.end()
  expect(await first.stop()).toBe(0)
  const second = await start(dataDir)
  expect((await call(second.demo, 'GET', '/api/v1/wallets')).body.code).toBe('2000')
})

test('no program runs as root, PostgreSQL as another user than the others, and only their owner can read its files', async () => {
  const dataDir = await makeTempDir('start')
  await start(dataDir)
  const uids = [(await stat(join(dataDir, 'postgres'))).uid]
  for (const name of ['core', 'courier', 'gateway']) uids.push(await userOf(await pidOf(dataDir, name)))
  // Only root can start programs as other users.
  const isRoot = process.getuid!() === 0
  expect(isRoot ? new Set(uids).size : uids).toEqual(isRoot ? 4 : Array(4).fill(process.getuid!()))
  expect(uids).not.toContain(0)
  for (const name of ['secrets.json', 'core.json', 'demo.json', 'logs/core.log']) {
    const file = await stat(join(dataDir, name))
    expect([name, file.uid, file.mode & 0o077]).toEqual([name, process.getuid!(), 0])
  }
})

test('a full disk is reported', async () => {
  const disk = await mountSmallDisk()
  if (!disk) return console.log('A full disk is not tested: this process may not mount one.')
  await disk.fill()
  const { status, stderr } = spawnSync(process.execPath, [script], {
    env: { PATH, NODE_COMPILE_CACHE, DATA_DIR: disk.path, GATEWAY_PORT: '0', CORE_PORT: '0' },
    encoding: 'utf8',
  })
  await disk.unmount()
  expect([status, stderr]).toEqual([1, expect.stringContaining(`The disk that holds ${disk.path} is full: free some`)])
})

test('a second start on the same data directory fails with one sentence', async () => {
  const dataDir = await makeTempDir('start')
  await start(dataDir)
  const second = spawnSync(process.execPath, [script], {
    env: { PATH, NODE_COMPILE_CACHE, DATA_DIR: dataDir, GATEWAY_PORT: '0', CORE_PORT: '0' },
    encoding: 'utf8',
  })
  expect([second.status, second.stderr.trim().split('\n')]).toEqual([
    1,
    [`Another npm start uses ${dataDir}: stop it, or set DATA_DIR to another directory.`],
  ])
})
