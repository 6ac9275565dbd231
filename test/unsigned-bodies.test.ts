import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Program } from '../cli/processes/program.ts'
import { type Outcomes, sendSlowBodies, sendTinyChunks } from '../tools/chaos/attacks.ts'
import { batchPath, call, createPath, type Overrides, signedHeaders } from './setup/client.ts'
import { connect } from './setup/database.ts'
import { readMetric } from './setup/metrics.ts'
import { transferOrder } from './setup/order.ts'
import { exchange, openConnection, received, requestText } from './setup/raw-http.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { createKey } from './setup/workspaces.ts'

/** Somebody who knows the ID of an API key, and mostly not its secret, sends bodies to a gateway with the heap of a small container. */

const mebibyte = 2 ** 20
const memoryBytes = 16 * mebibyte
const environment = {
  NODE_OPTIONS: '--max-old-space-size=256',
  BODY_MEMORY_BYTES: String(memoryBytes),
  TRUSTED_PROXIES: '127.0.0.1',
}
/** The limit of the body of a batch. */
const largestBody = 262_144

let system: System
let gateway: Program
beforeAll(async () => {
  system = await startSystem({ gatewayEnvironment: environment, waitsForLocks: true })
  gateway = system.gateways[0]!
})
afterAll(() => system.stop())

const from = (address: string) => [`X-Forwarded-For: ${address}`]
const attacker = from('203.0.113.9')
const neighbour: Overrides = { headers: { 'X-Forwarded-For': '203.0.113.9' } }
const stranger: Overrides = { headers: { 'X-Forwarded-For': '198.51.100.7' } }

const residentBytes = () => readMetric(gateway.internalUrl, 'process_resident_memory_bytes')
const bodyBytes = () => readMetric(gateway.internalUrl, 'gateway_body_bytes')

/**
 * Repeats an attack until clients at the address of the attacker and at another one have been served four times each. Returns the
 * outcomes of the attacks, and by how much the memory of the gateway grew.
 */
async function serveDuring(attack: () => Promise<Outcomes>): Promise<{ outcomes: Outcomes; grownBytes: number }> {
  const outcomes: Outcomes = {}
  const before = await residentBytes()
  let grownBytes = 0
  let isOver = false
  const attacks = async () => {
    do
      for (const [outcome, count] of Object.entries(await attack()))
        outcomes[outcome] = (outcomes[outcome] ?? 0) + count
    while (!isOver)
  }
  const serve = async (client: Overrides) => {
    for (let served = 0; served < 4; ) {
      const { body } = await call(system, 'POST', createPath, transferOrder(system), client)
      // Redis may answer too slowly on a busy machine.
      expect(['2000', 'S002']).toContain(body.code)
      if (body.code === '2000') served++
      expect(await bodyBytes()).toBeLessThanOrEqual(memoryBytes / 2 + 10 * largestBody)
      grownBytes = Math.max(grownBytes, (await residentBytes()) - before)
    }
  }
  const clients = Promise.all([serve(neighbour), serve(stranger)]).finally(() => (isOver = true))
  await Promise.all([attacks(), clients])
  expect(gateway.process.exitCode).toBe(null)
  expect(gateway.process.signalCode).toBe(null)
  await until('the memory for bodies is free again', async () => (await bodyBytes()) === 0)
  return { outcomes, grownBytes }
}

test('bodies in tiny chunks are cut off, and others are served', async () => {
  const { outcomes, grownBytes } = await serveDuring(() =>
    sendTinyChunks(system, { connections: 10, bytes: 260_000, lines: attacker }),
  )
  // While the attacker writes, the reset of the connection may overtake the answer.
  expect(['413', 'closed']).toEqual(expect.arrayContaining(Object.keys(outcomes)))
  expect(grownBytes).toBeLessThan(128 * mebibyte)
})

test('bodies that never end share the memory for bodies, and others are served', async () => {
  const connections = 1_200
  const { outcomes, grownBytes } = await serveDuring(() =>
    sendSlowBodies(system, { connections, bytes: largestBody, lines: attacker }),
  )
  expect(outcomes['503']).toBeGreaterThan(connections / 2)
  expect(grownBytes).toBeLessThan((connections * largestBody) / 2)
})

test('the bodies of signed requests share the memory for bodies until they are answered', async () => {
  const order = transferOrder(system, { bizId: 'large' })
  const body = JSON.stringify({ transfers: [order] }).padEnd(largestBody)
  const fitting = memoryBytes / 2 / largestBody
  const codes: string[] = []
  const send = async () => codes.push((await call(system, 'POST', batchPath, body)).body.code)
  const owner = await connect(system.database.ownerUrl)
  await owner.query('begin; lock table ledger in access exclusive mode')
  const sent = Array.from({ length: fitting + 8 }, send)
  let refused: number
  try {
    await until(
      'those that do not fit are refused, and the others wait for core',
      async () => codes.length + (await bodyBytes()) / largestBody === sent.length,
    )
    expect(codes.length).toBeGreaterThanOrEqual(8)
    expect(await bodyBytes()).toBeGreaterThan(memoryBytes / 4)
    refused = codes.length
  } finally {
    await owner.end()
  }
  await Promise.all(sent)
  expect(new Set(codes.slice(0, refused))).toEqual(new Set(['S002']))
  expect(new Set(codes.slice(refused))).toEqual(new Set(['2000']))
  await until('their memory is free', async () => (await bodyBytes()) === 0)
})

describe('a client', () => {
  const body = () => JSON.stringify(transferOrder(system))
  const signed = async (text: string, lines: string[]) =>
    requestText('POST', createPath, await signedHeaders(system, 'POST', createPath, text), lines)
  const chunksOf = (text: string, bytes: number) =>
    `${(text.match(new RegExp(`.{1,${bytes}}`, 'gs')) ?? []).map(chunk => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('')}0\r\n\r\n`

  test('may send a small body in chunks of a byte, and a large one in chunks of a packet', async () => {
    for (const [text, bytes] of [
      [body(), 1],
      [body().replace('}', `${' '.repeat(60_000)}}`), 100],
    ] as const) {
      const socket = await openConnection(system.baseUrl)
      socket.write(await signed(text, ['Transfer-Encoding: chunked', 'Connection: close']))
      socket.write(chunksOf(text, bytes))
      expect(await received(socket)).toMatch(/^HTTP\/1\.1 200 /)
    }
  })

  test('that sends too many tiny chunks gets S013 with a sentence, before its body has ended', async () => {
    const socket = await openConnection(system.baseUrl)
    const text = ' '.repeat(2_000)
    const head = await signed(text, ['Transfer-Encoding: chunked', 'X-LOCALE: en-US'])
    socket.write(head + chunksOf(text, 1).slice(0, -'0\r\n\r\n'.length))
    const answer = await received(socket)
    expect(answer).toMatch(/^HTTP\/1\.1 413 [\s\S]*Connection: close[\s\S]*"code":"S013"/)
    expect(answer).toContain('too many small pieces')
  })

  test('whose slow body gives way gets S002 with Retry-After, and can send the same request again', async () => {
    const text = body()
    const head = await signed(text, [`Content-Length: ${text.length}`, ...attacker])
    const slow = await openConnection(system.baseUrl)
    const answer = received(slow)
    slow.write(head + text.slice(0, -1))
    await until('the body has begun', async () => (await bodyBytes()) > 0)
    const attack = sendSlowBodies(system, { connections: 64, bytes: largestBody, lines: attacker })
    expect(await answer).toMatch(
      /^HTTP\/1\.1 503 (?=[\s\S]*Retry-After: 1)(?=[\s\S]*Connection: close)[\s\S]*"code":"S002"/,
    )
    const again = await openConnection(system.baseUrl)
    again.write(head.replace('Host: x', 'Host: x\r\nConnection: close') + text)
    expect(await received(again)).toMatch(/^HTTP\/1\.1 200 /)
    await attack
  })
})

test('while a key is being looked up, the bodies of its requests take little memory', async () => {
  const { apiKey } = await createKey(system)
  const core = system.cores[0]!
  const before = await residentBytes()
  await core.kill('SIGSTOP')
  try {
    // The gateway has to ask core for the key, and finds out after two seconds that core does not respond.
    const { baseUrl } = system
    const outcomes = await sendTinyChunks({ baseUrl, apiKey }, { connections: 400, bytes: 60_000, lines: attacker })
    expect(outcomes).toEqual({ 503: 400 })
    expect((await residentBytes()) - before).toBeLessThan(128 * mebibyte)
    expect(gateway.process.signalCode).toBe(null)
  } finally {
    await core.kill('SIGCONT')
  }
  await until('requests are served', async () => (await call(system, 'GET', '/api/v1/wallets')).status === 200)
})

test('while requests outside the API wait for core, their bodies take little memory', async () => {
  const core = system.cores[0]!
  // A gateway that has not read the keys of receipts from core yet.
  const gateway = await system.startGateway(environment)
  const before = await readMetric(gateway.internalUrl, 'process_resident_memory_bytes')
  await core.kill('SIGSTOP')
  try {
    const head = requestText('GET', '/.well-known/jwks.json', {}, ['Transfer-Encoding: chunked', 'Connection: close'])
    const body = `${'1\r\nx\r\n'.repeat(1_000)}${`40\r\n${'x'.repeat(64)}\r\n`.repeat(1_900)}0\r\n\r\n`
    const responses = await Promise.all(Array.from({ length: 300 }, () => exchange(gateway.url, head + body)))
    expect(new Set(responses.map(response => response.slice(0, 12)))).toEqual(new Set(['HTTP/1.1 503']))
    expect((await readMetric(gateway.internalUrl, 'process_resident_memory_bytes')) - before).toBeLessThan(
      96 * mebibyte,
    )
  } finally {
    await core.kill('SIGCONT')
  }
})
