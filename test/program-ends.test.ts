import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { call } from './setup/client.ts'
import { pauseAfter } from './setup/load.ts'
import { openConnection } from './setup/raw-http.ts'
import { startReceiver } from './setup/receiver.ts'
import { type System, startSystem } from './setup/system.ts'
import { makeTempDir } from './setup/temp.ts'
import { until } from './setup/until.ts'

/** Programs close everything and end by themselves: process.exit() can hang (see endProgram in packages/runtime). */

let system: System
beforeAll(async () => {
  system = await startSystem()
})
afterAll(() => system.stop())

test('core, gateway and courier leave nothing open when they are stopped under load', async () => {
  const nonceFile = join(await makeTempDir('nonces'), 'nonces.db')
  // Gateways of the same core use one nonce store at a time.
  const other = await startSystem({ gateways: 0 })
  const fileGateway = await other.startGateway({ REDIS_URL: undefined, NONCE_FILE: nonceFile })
  const gateways = [system.gateways[0]!, fileGateway]
  const signers = [system, { ...other, baseUrl: fileGateway.url }]
  const courier = await system.startCourier()
  const receiver = await startReceiver()
  const webhook = { url: receiver.url, bizId: 'ends' }
  expect((await call(system, 'POST', '/api/v1/webhook/command/create', webhook)).body.code).toBe('2000')
  let answered = 0
  // Several for each gateway, which call it until it no longer listens.
  const clients = [...signers, ...signers, ...signers].map(async signer => {
    for (;;) {
      const answer = await call(signer, 'GET', '/api/v1/wallets').catch(() => null)
      if (!answer) return
      answered++
      await pauseAfter(answer.body.code)
    }
  })
  await until('requests are answered', () => answered > 20)
  for (const program of [courier, ...gateways, ...system.cores, ...other.cores]) {
    expect(await program.stop()).toBe(0)
    expect(program.output()).not.toContain('still open')
  }
  await Promise.all(clients)
  await other.stop()
  await receiver.stop()
})

test('a program that cannot start says why, and leaves nothing open', async () => {
  const { port } = system.gateways[0]!
  const taken = await system.startGateway({ GATEWAY_PORT: String(port) })
  const failures = [
    () => system.startGateway({ GATEWAY_PORT: String(taken.port) }),
    () => system.startGateway({ GATEWAY_PORT: 'x' }),
    () => system.startCore({ CORE_PORT: String(taken.port) }),
    () => system.startCore({ LEDGER_CHAIN_KEY: Buffer.alloc(32).toString('base64') }),
    () => system.startCourier({ INTERNAL_PORT: String(taken.port) }),
  ]
  for (const failure of failures) {
    const message = await failure().then(
      () => 'it has started',
      ({ message }: Error) => message,
    )
    expect(message).toMatch(/exited before it was ready \(exit (1|65)\)/)
    expect(message).not.toContain('still open')
  }
  await taken.stop()
})

test('a connection that sends no complete request keeps no program from ending by itself', async () => {
  const own = await startSystem()
  const programs = [own.gateways[0]!, own.cores[0]!]
  const sockets = []
  for (const { url } of programs)
    for (const text of ['', 'GET /healthz HTTP/1.1\r\nHost']) {
      const socket = await openConnection(url)
      socket.on('error', () => {}).write(text)
      sockets.push(socket)
    }
  expect(await Promise.all(programs.map(program => program.stop()))).toEqual([0, 0])
  for (const socket of sockets) socket.destroy()
  await own.stop()
})
