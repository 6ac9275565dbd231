import { once } from 'node:events'
import { packBatch, unpackBatch } from '@workspace-wallet/contract'
import { frameKinds, packFrame } from '@workspace-wallet/runtime/batch-frames'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openBatches, sendBatch, upgradeText } from './setup/batches.ts'
import { connect } from './setup/database.ts'
import { readMetric } from './setup/metrics.ts'
import { exchange, openConnection, requestText } from './setup/raw-http.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'

/** Connections that carry batches to core, directly and through the internal listener of a gateway. */

let system: System
/** Core, and the listener that passes on to it. */
let urls: string[]
beforeAll(async () => {
  system = await startSystem()
  urls = [system.coreUrl, system.gateways[0]!.internalUrl]
})
afterAll(() => system.stop())

function balance(count = 1): Buffer {
  const { workspaceId, wallets } = system
  const input = { workspaceId, caller: { requestId: 'batch' }, walletId: wallets[2]!.walletId }
  return packBatch(Array.from({ length: count }, () => ({ path: 'wallets.balance', type: 'query', input }) as const))
}

async function expectServed(url: string): Promise<void> {
  const { status, body } = await sendBatch(url, system.serviceToken, balance())
  expect(status).toBe(200)
  expect(unpackBatch(body)).toMatchObject([{ data: { walletId: system.wallets[2]!.walletId } }])
}

const usedMemory = () => readMetric(system.coreUrl, 'core_body_bytes')

test('a connection is opened with a known token, at its path and for its protocol only', async () => {
  for (const url of urls) {
    await expectServed(url)
    const unknown = await openBatches(url, 'x'.repeat(40))
    expect(unknown.status).toBe(401)
    expect(unknown.text).toContain('a known token is required')
    const open = (path: string, headers: object) =>
      exchange(url, requestText('GET', path, { Authorization: `Bearer ${system.serviceToken}`, ...headers }))
    const webSocket = { Connection: 'Upgrade, close', Upgrade: 'websocket' }
    expect(await open('/batch', webSocket)).toMatch(/^HTTP\/1\.1 400 .*needs the header Upgrade/s)
    expect(await open('/batch', { Connection: 'close' })).toMatch(/^HTTP\/1\.1 400 .*needs the header Upgrade/s)
    expect(await open('/healthz', { Connection: 'Upgrade, HTTP2-Settings, close', Upgrade: 'h2c' })).toMatch(
      /^HTTP\/1\.1 200 /,
    )
  }
  // Elsewhere, the request for the upgrade is ignored.
  expect(await openBatches(system.coreUrl, system.serviceToken, '/other')).toMatchObject({ status: 404 })
})

test('a token may open at most 1,024 connections to a core, which take none from others', async () => {
  const core = await system.startCore()
  const opened: Awaited<ReturnType<typeof openBatches>>[] = []
  const open = async (token = system.courierToken) => {
    const connection = await openBatches(core.url, token)
    opened.push(connection)
    return connection
  }
  // One at a time: the kernel lets a limited number wait to be accepted.
  for (let count = 0; count < 1024; count++) expect(await open()).toMatchObject({ status: 101 })
  expect(await open()).toMatchObject({ status: 503, text: expect.stringContaining('this token has 1024 connections') })
  expect(await open(system.serviceToken)).toMatchObject({ status: 101 })
  opened[0]!.socket.destroy()
  await until('another one is opened', async () => (await open()).status === 101)
  for (const { socket } of opened) socket.destroy()
  await core.stop()
})

test('a connection that was refused is closed, also if its client does not close it', async () => {
  for (const url of urls) {
    const socket = await openConnection(url, true)
    const closed = once(socket, 'error')
    // Until the server reads no more either.
    const timer = setInterval(() => socket.write('x'), 10)
    socket.resume().write(upgradeText('x'.repeat(40)))
    await closed
    clearInterval(timer)
  }
})

test('a request that precedes the upgrade on its connection, and has no response yet, closes it', async () => {
  const health = 'GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n'
  for (const url of urls) expect(await exchange(url, health + upgradeText(system.serviceToken))).not.toContain('101')
})

test('what is not a frame closes the connection', async () => {
  for (const url of urls)
    for (const bytes of [
      Buffer.from('GET /healthz HTTP/1.1\r\n\r\n'),
      packFrame(frameKinds.answers, 1, balance()),
      // Announces four gigabytes.
      Buffer.concat([Buffer.from([frameKinds.batch, 0, 0, 0, 1, 255, 255, 255, 255]), Buffer.alloc(100_000)]),
    ]) {
      const { socket } = await openBatches(url, system.serviceToken)
      socket.write(bytes)
      await until('the connection is closed', () => socket.destroyed)
    }
  for (const url of urls) await expectServed(url)
})

test('a batch that is rejected does not affect the next one on its connection', async () => {
  for (const url of urls) {
    const connection = await openBatches(url, system.serviceToken)
    expect(connection.status).toBe(101)
    expect((await connection.send(Buffer.alloc(2 ** 21 + 1))).status).toBe(413)
    expect((await connection.send(Buffer.from('no MessagePack'))).status).toBe(400)
    expect((await connection.send(balance())).status).toBe(200)
    connection.socket.destroy()
  }
})

test('answers come in the order in which they are ready', async () => {
  const { workspaceId } = system
  const owner = await connect(system.database.ownerUrl)
  const connection = await openBatches(system.coreUrl, system.adminToken)
  const order: string[] = []
  try {
    await owner.query('begin; select * from ledger for update')
    const input = { workspaceId, currency: 'USD', name: 'Late' }
    const late = connection
      .send(packBatch([{ path: 'wallets.create', type: 'mutation', input }]))
      .then(() => order.push('wallets.create'))
    await connection.send(packBatch([{ path: 'session.whoami', type: 'query', input: undefined }]))
    order.push('session.whoami')
    await owner.query('rollback')
    await late
  } finally {
    await owner.end()
    connection.socket.destroy()
  }
  expect(order).toEqual(['session.whoami', 'wallets.create'])
})

test('a call that takes long does not delay the others of its batch', async () => {
  const { workspaceId, wallets } = system
  const owner = await connect(system.database.ownerUrl)
  const connection = await openBatches(system.coreUrl, system.adminToken)
  const { walletId } = wallets[0]!
  const late = {
    path: 'wallets.create',
    type: 'mutation',
    input: { workspaceId, currency: 'USD', name: 'Late' },
  } as const
  const caller = { requestId: 'batch' }
  const fast = { path: 'wallets.get', type: 'query', input: { workspaceId, caller, walletId } } as const
  const unknown = { path: 'no.procedure', type: 'query', input: null } as const
  try {
    await owner.query('begin; select * from ledger for update')
    const sent = connection.send(packBatch([late, fast, unknown, fast]))
    await until('the answers to the others have arrived', () => connection.partlyAnswered === 3)
    await owner.query('rollback')
    const { body, parts } = await sent
    expect(parts.flat().toSorted()).toEqual([1, 2, 3])
    const wallet = { data: { walletId } }
    // The first may have waited too long for the lock.
    expect(unpackBatch(body)).toMatchObject([expect.anything(), wallet, { error: {} }, wallet])
  } finally {
    await owner.end()
    connection.socket.destroy()
  }
})

test('a client that reads no answers is not read either, and others are served', async () => {
  const socket = await openConnection(system.coreUrl)
  socket.on('error', () => {}).pause()
  // An answer repeats the path of each call twice. All of them are more than the kernel and core may keep.
  const calls = Array.from({ length: 400 }, () => ({ path: 'x'.repeat(4_000), type: 'query', input: null }) as const)
  socket.write(upgradeText(system.serviceToken))
  for (let id = 1; id <= 40; id++) socket.write(packFrame(frameKinds.batch, id, packBatch(calls)))
  await until('core has stopped reading', async () => {
    const before = socket.writableLength
    await expectServed(system.coreUrl)
    return socket.writableLength === before && before > 0
  })
  expect(socket.writableLength).toBeGreaterThan(2 ** 24)
  // Core answers what it had read by then: less than half of the 128 MB that all of them would take.
  expect(await readMetric(system.coreUrl, 'core_unread_answer_bytes')).toBeLessThan(2 ** 26)
  socket.destroy()
  await until('its memory is free again', async () => (await usedMemory()) === 0)
})

test('thousands of empty batches in one piece are answered one after another, and others are served meanwhile', async () => {
  const connection = await openBatches(system.coreUrl, system.courierToken)
  const count = 5_000
  const results = Array.from({ length: count }, (_, at) => connection.expect(at + 1))
  const empty = packBatch([])
  connection.socket.write(Buffer.concat(results.map((_, at) => packFrame(frameKinds.batch, at + 1, empty))))
  await expectServed(system.coreUrl)
  expect(new Set((await Promise.all(results)).map(({ status }) => status))).toEqual(new Set([400]))
  connection.socket.destroy()
})

test('a batch that does not arrive completely closes its connection after ten seconds', async () => {
  const { socket } = await openBatches(system.coreUrl, system.serviceToken)
  socket.write(packFrame(frameKinds.batch, 1, balance()).subarray(0, 30))
  expect(await until('a part has arrived', usedMemory)).toBeGreaterThan(0)
  await until('the connection is closed', () => socket.destroyed)
  await until('its memory is free', async () => (await usedMemory()) === 0)
})

test('a core that stops answers what it has received, and asks its clients for no more', async () => {
  const core = await system.startCore()
  const { workspaceId } = system
  const owner = await connect(system.database.ownerUrl)
  const connection = await openBatches(core.url, system.adminToken)
  try {
    await owner.query('begin; select * from ledger for update')
    const input = { workspaceId, currency: 'USD', name: 'Last' }
    const last = connection.send(packBatch([{ path: 'wallets.create', type: 'mutation', input }]))
    await until('core has begun', () => readMetric(core.url, 'core_body_bytes'))
    const stopped = core.stop()
    await until('core says so', () => connection.others.some(({ kind }) => kind === frameKinds.drain))
    const read = connection.send(packBatch([{ path: 'session.whoami', type: 'query', input: undefined }]))
    expect((await read).status).toBe(200)
    await owner.query('rollback')
    expect(unpackBatch((await last).body)).toMatchObject([{ data: { name: 'Last' } }])
    connection.socket.end()
    await stopped
  } finally {
    await owner.end()
  }
})
