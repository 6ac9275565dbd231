import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Program } from '../cli/processes/program.ts'
import { call, createPath, type Overrides } from './setup/client.ts'
import { type LogLine, logLines } from './setup/log-lines.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { createKey } from './setup/workspaces.ts'

/** Denied requests are counted by code and key, and sampled in the log, without text that the caller made up. */

const list = '/api/v1/wallets'

let system: System
let gateway: Program
beforeAll(async () => {
  system = await startSystem()
  gateway = system.gateways[0]!
})
afterAll(() => system.stop())

async function metrics(): Promise<string> {
  return (await fetch(`${gateway.internalUrl}/metrics`)).text()
}

/** The number of denials by `code key`. */
async function denied(): Promise<Record<string, number>> {
  const lines = (await metrics()).matchAll(/^gateway_denied_total\{code="([^"]*)",key="([^"]*)"\} (\d+)$/gm)
  return Object.fromEntries([...lines].map(([, code, key, count]) => [`${code} ${key}`, Number(count)]))
}

/** The number of requests that lines report: one each, and those that a summary counts. */
function countOf(lines: LogLine[]): number {
  return lines.reduce((sum, { count = 1 }) => sum + Number(count), 0)
}

test('denials are counted by code and key; every key that does not exist counts as unknown', async () => {
  const { admin, apiKey } = system
  const other = await createKey(system, { scopes: ['transfer:read'] })
  const codeOf = async (overrides: Overrides = {}, path = list, credentials = {}) =>
    (await call({ ...system, ...credentials }, 'GET', path, undefined, overrides)).body.code
  const send = async (code: string, ...request: Parameters<typeof codeOf>) =>
    expect(await codeOf(...request)).toBe(code)
  const madeUp = ['ak_01h455vb4pex5vsknk084sn02q', 'ak_"} 1\\n', 'made-up-key-text', '%{jndi:x}']
  for (const text of madeUp) await send('GA2011', { headers: { 'X-Api-Key': text } })
  await send('GA2001', { headers: { 'X-Api-Key': null } })
  const wrongSignature = { nonce: `nonce-${randomUUID()}`, secret: 'x' }
  for (let count = 0; count < 5; count++) await send('GA2012', wrongSignature)
  await send('GA2013', { timestamp: '1' })
  await send('50090201', {}, '/api/v1/made-up-path')
  await send('2000')
  await send('S012', {}, `${list}?size=x`)
  let missingScopes = 1
  await send('GA2024', {}, list, other)
  await admin.apiKeys.disable.mutate(other)
  await until('the key is disabled at the gateway', async () => {
    const code = await codeOf({}, list, other)
    if (code === 'GA2024') missingScopes++
    return code === 'GA2021'
  })
  expect(await denied()).toEqual({
    'GA2011 unknown': 4,
    'GA2001 unknown': 1,
    [`GA2012 ${apiKey}`]: 5,
    [`GA2013 ${apiKey}`]: 1,
    [`50090201 ${apiKey}`]: 1,
    [`GA2024 ${other.apiKey}`]: missingScopes,
    [`GA2021 ${other.apiKey}`]: 1,
  })

  await gateway.stop()
  const denials = logLines(gateway).filter(({ msg }) => msg.includes('denied'))
  const of = (code: string) => denials.filter(line => line.code === code)
  // There are two lines of a kind, or more if the requests took longer than ten seconds.
  expect(countOf(of('GA2012'))).toBe(5)
  expect(of('GA2012')[0]).toMatchObject({ msg: 'a request was denied' })
  for (const line of of('GA2012')) expect(line).toMatchObject({ apiKey, address: '127.0.0.1' })
  expect(countOf(of('GA2011'))).toBe(4)
  for (const line of of('GA2011')) expect(line).not.toHaveProperty('apiKey')
  for (const { requestId } of denials) expect(requestId).toMatch(/^req_/)
  for (const secret of [...madeUp, wrongSignature.nonce, system.apiSecret, other.apiSecret, 'made-up-path'])
    expect(gateway.output()).not.toContain(secret)
})

test('requests without a valid signature are all counted, and sampled in the log, whatever they ask for', async () => {
  const startedAtMs = performance.now()
  const own = await system.startGateway({ LOG_LEVEL: 'info' })
  const at = (path: string, init: RequestInit = {}) => fetch(`${own.url}${path}`, init)
  for (let sent = 0; sent < 2_000; sent += 100)
    await Promise.all(Array.from({ length: 100 }, (_, index) => at(`/x${sent + index}`)))
  for (let sent = 0; sent < 10; sent++) await at(`/api/v1/made-up-${sent}`, { method: 'PUT' })
  const large = { method: 'POST', body: 'x'.repeat(70_000), headers: { 'X-Api-Key': system.apiKey } }
  for (let sent = 0; sent < 10; sent++) await at(createPath, large)
  // With a valid signature, each request has a log line.
  for (let sent = 0; sent < 5; sent++)
    await call({ ...system, baseUrl: own.url }, 'GET', `${list}?size=made-up`).then(({ body }) =>
      expect(body.code).toBe('S012'),
    )
  const metrics = await (await fetch(`${own.internalUrl}/metrics`)).text()
  expect(metrics).toContain('gateway_rejections_total{step="endpoint",code="S004",status="404"} 2000')

  await own.stop()
  const lines = logLines(own)
  const of = (code: string) => lines.filter(line => line.code === code)
  // At most two lines of a kind in ten seconds. The limit grows with the time that the test takes.
  const mostLines = 2 * (Math.floor((performance.now() - startedAtMs) / 10_000) + 1)
  const sampled = {
    S004: [2_000, 'a request was rejected'],
    GA2001: [10, 'a request was denied'],
    GA2013: [10, 'a request was denied'],
  }
  for (const [code, [requests, message]] of Object.entries(sampled)) {
    const [first, ...more] = of(code)
    expect(first, code).toMatchObject({ msg: message })
    expect(more.length, code).toBeGreaterThan(0)
    expect(more.length, code).toBeLessThan(mostLines)
    expect(countOf(of(code)), code).toBe(requests)
  }
  expect(of('S012')).toHaveLength(5)
  expect(own.output()).not.toContain('made-up')
})
