import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { scopes } from '@workspace-wallet/contract'
import { createCoreClient } from '@workspace-wallet/core-client'
import { afterEach, expect, test } from 'vitest'
import { call, createPath } from '../test/setup/client.ts'
import { startReceiver } from '../test/setup/receiver.ts'
import { mountSmallDisk } from '../test/setup/small-disk.ts'
import { makeTempDir } from '../test/setup/temp.ts'
import { until } from '../test/setup/until.ts'
import { describeProcess, userOf } from '../tools/services/processes.ts'

const script = fileURLToPath(new URL('start.ts', import.meta.url))
const started: Started[] = []
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

async function start(dataDir: string): Promise<Started> {
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
  const each: Started = { child, output: () => output, demo: {} as Demo, stop }
  started.push(each)
  await until('npm start is ready', () => {
    if (child.exitCode !== null) throw new Error(`npm start exited:\n${output}`)
    return output.includes('Ctrl-C stops everything')
  })
  each.demo = JSON.parse(await readFile(join(dataDir, 'demo.json'), 'utf8'))
  return each
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
  const pasted = first.output().slice(first.output().indexOf('\n(\n'), first.output().indexOf('\n)\n') + 3)
  const answer = spawnSync('bash', ['-c', pasted], { encoding: 'utf8' })
  expect(JSON.parse(answer.stdout)).toMatchObject({ success: true, code: '2000' })
  // zsh takes a letter after the colon for a modifier.
  expect(pasted).not.toMatch(/\$\{\w+:[a-z]/)

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

test('no program runs as root, and only their owner can read its files', async () => {
  const dataDir = await makeTempDir('start')
  await start(dataDir)
  const { uid } = await stat(join(dataDir, 'postgres'))
  expect(uid).not.toBe(0)
  for (const name of ['core', 'courier', 'gateway']) expect(await userOf(await pidOf(dataDir, name))).toBe(uid)
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
