/** Delivery of events to webhooks, by real couriers to real receivers. couriers.test.ts kills them. */
import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { Program } from '../cli/processes/program.ts'
import { makeCertificate } from './setup/certificates.ts'
import { call, createPath } from './setup/client.ts'
import { logLines } from './setup/log-lines.ts'
import { readMetric } from './setup/metrics.ts'
import { transferOrder } from './setup/order.ts'
import { type Receiver, type Respond, startReceiver } from './setup/receiver.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { type Webhooks, webhooksOf } from './setup/webhooks.ts'
import { createTenant, createWallet } from './setup/workspaces.ts'

let system: System
let webhooks: Webhooks
beforeAll(async () => {
  system = await startSystem()
  webhooks = webhooksOf(system)
})
afterAll(async () => {
  await webhooks.close()
  await system.stop()
})

const receivers: Receiver[] = []
const couriers: Program[] = []
const created: string[] = []
afterEach(async () => {
  for (const webhookId of created.splice(0)) await webhooks.remove(webhookId)
  for (const receiver of receivers.splice(0)) await receiver.stop()
  for (const courier of couriers.splice(0)) expect(await courier.stop()).toBe(0)
})

async function receive(respond?: Respond): Promise<Receiver> {
  const receiver = await startReceiver(respond)
  receivers.push(receiver)
  return receiver
}
async function subscribe(
  receiver: Pick<Receiver, 'url' | 'secrets'>,
  options: Parameters<Webhooks['create']>[1] = {},
): Promise<string> {
  const webhookId = await webhooks.create(receiver, options)
  created.push(webhookId)
  return webhookId
}
async function startCourier(environment: NodeJS.ProcessEnv = {}): Promise<Program> {
  const courier = await system.startCourier(environment)
  couriers.push(courier)
  return courier
}

async function transferTimes(times: number): Promise<void> {
  for (let at = 0; at < times; at++) {
    const { body } = await call(system, 'POST', createPath, transferOrder(system, { bizId: randomUUID() }))
    expect(body.code).toBe('2000')
  }
}

const positionsOf = (receiver: Receiver) => receiver.received.map(({ event }) => event.position)
const successesOf = (receiver: Receiver) =>
  receiver.received.filter(({ status }) => status! < 300).map(({ event }) => event.position)
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => from + at)
/** Waits until everything is delivered. */
const delivered = (webhookId: string) =>
  until('the webhook has reached the end of the log', async () => {
    const { position } = await webhooks.get(webhookId)
    return position === (await webhooks.head())
  })
const failing = (webhookId: string) =>
  until('a failure is recorded', async () => {
    const found = await webhooks.get(webhookId)
    return found.failingSince && found
  })

test('every event arrives once, in order, signed, as the event log shows it', async () => {
  const receiver = await receive()
  const webhookId = await subscribe(receiver)
  const start = await webhooks.head()
  await startCourier()
  await transferTimes(25)
  await delivered(webhookId)
  expect(positionsOf(receiver)).toEqual(range(start + 1, start + 25))
  expect(receiver.maxInProgress).toBe(1)
  expect(receiver.forged).toEqual([])
  const { body } = await call(system, 'GET', `/api/v1/event/query/events/${start}`)
  expect(receiver.received.map(({ event }) => event)).toEqual(body.data.content)
  expect(await webhooks.get(webhookId)).toMatchObject({ status: 'ACTIVE', lastStatus: 204, failingSince: null })
})

test('with concurrency 1, no event overtakes one that failed, however often that fails', async () => {
  let attempts = 0
  const receiver = await receive(() => (++attempts % 3 === 0 ? 204 : 503))
  const webhookId = await subscribe(receiver)
  const start = await webhooks.head()
  await startCourier()
  await transferTimes(8)
  await until('all events are delivered', async () => {
    // Ends the backoff, in place of waiting.
    await webhooks.set(webhookId, 'next_attempt_at = now()')
    return (await webhooks.get(webhookId)).position === start + 8
  })
  expect(positionsOf(receiver)).toEqual(range(start + 1, start + 8).flatMap(each => [each, each, each]))
  expect(successesOf(receiver)).toEqual(range(start + 1, start + 8))
})

test('with concurrency 4, at most four are in progress, and all arrive', async () => {
  const waiting: (() => void)[] = []
  let isHeld = true
  const receiver = await receive(() => (isHeld ? new Promise(resolve => waiting.push(() => resolve(204))) : 204))
  const webhookId = await subscribe(receiver, { concurrency: 4 })
  const start = await webhooks.head()
  await transferTimes(20)
  await startCourier()
  await until('four requests wait', () => waiting.length === 4)
  isHeld = false
  for (const release of waiting) release()
  await delivered(webhookId)
  expect(receiver.maxInProgress).toBe(4)
  expect(successesOf(receiver).sort((a, b) => a - b)).toEqual(range(start + 1, start + 20))
})

test('a failure is followed by the waits of the backoff, and Retry-After replaces them', async () => {
  let attempts = 0
  // The second attempt begins some seconds after the first. Its answer waits until the wait is compared.
  const compared = Promise.withResolvers<void>()
  const receiver = await receive(async () => {
    if (++attempts === 1) return 500
    await compared.promise
    return attempts === 2 ? { status: 429, headers: { 'retry-after': '1234' } } : 200
  })
  const webhookId = await subscribe(receiver)
  await startCourier()
  await transferTimes(1)
  await failing(webhookId)
  const wait = await webhooks.waitSeconds(webhookId)
  expect(wait).toBeGreaterThanOrEqual(4)
  expect(wait).toBeLessThanOrEqual(6)
  expect(await webhooks.get(webhookId)).toMatchObject({ lastStatus: 500, status: 'ACTIVE' })
  await webhooks.set(webhookId, 'next_attempt_at = now()')
  compared.resolve()
  await until('the second attempt is recorded', async () => (await webhooks.get(webhookId)).lastStatus === 429)
  expect(await webhooks.waitSeconds(webhookId)).toBe(1234)
  await webhooks.set(webhookId, 'next_attempt_at = now()')
  await delivered(webhookId)
  expect(await webhooks.get(webhookId)).toMatchObject({ lastStatus: 200, failingSince: null })
  expect(receiver.received.map(each => each.status)).toEqual([500, 429, 200])
})

test('410 pauses a webhook, and ACTIVE continues where it stood', async () => {
  let status = 410
  const receiver = await receive(() => status)
  const webhookId = await subscribe(receiver)
  const start = await webhooks.head()
  await startCourier()
  await transferTimes(3)
  await until('the webhook is paused', async () => (await webhooks.get(webhookId)).status === 'PAUSED')
  expect(await webhooks.get(webhookId)).toMatchObject({ position: start, lastStatus: 410 })
  status = 200
  await webhooks.update(webhookId, { status: 'ACTIVE' })
  await webhooks.set(webhookId, 'next_attempt_at = now()')
  await delivered(webhookId)
  expect(successesOf(receiver)).toEqual(range(start + 1, start + 3))
})

test('seven days without a success pause a webhook', async () => {
  const receiver = await receive(() => 500)
  const webhookId = await subscribe(receiver)
  await startCourier()
  await transferTimes(1)
  await failing(webhookId)
  await webhooks.set(webhookId, `failing_since = now() - interval '7 days', next_attempt_at = now()`)
  await until('the webhook is paused', async () => (await webhooks.get(webhookId)).status === 'PAUSED')
})

test('a redirect is a failure, and is not followed', async () => {
  const other = await receive()
  const receiver = await receive(() => ({ status: 307, headers: { location: other.url } }))
  other.secrets = receiver.secrets
  const webhookId = await subscribe(receiver)
  await startCourier()
  await transferTimes(1)
  expect(await failing(webhookId)).toMatchObject({ lastStatus: 307 })
  expect([other.received, other.forged]).toEqual([[], []])
})

test('a receiver that does not answer delays no other webhook', async () => {
  let release = () => {}
  const silent = await receive(() => new Promise(resolve => (release = () => resolve(200))))
  const quick = await receive()
  await subscribe(silent)
  const webhookId = await subscribe(quick)
  await startCourier()
  await transferTimes(1)
  await until('the receiver that does not answer has an event', () => silent.received.length > 0)
  await transferTimes(9)
  await delivered(webhookId)
  // On a slow machine, the attempt may have timed out, and another one begun.
  expect(new Set(silent.received.map(({ status }) => status))).toEqual(new Set([null]))
  release()
})

test('silent receivers of four workspaces with more webhooks than a courier leases delay no other workspace', async () => {
  let release = () => {}
  const released = new Promise<void>(resolve => (release = resolve))
  const silent = await receive(() => released.then(() => 204))
  const [attempts, inWorkspace] = [64, 16]
  const removals: (() => Promise<unknown>)[] = []
  for (let at = 0; at < attempts / inWorkspace; at++) {
    const { workspaceId } = await createTenant(system)
    const own = webhooksOf({ ...system, workspaceId })
    for (let each = 0; each < inWorkspace; each++) {
      const webhookId = await own.create(silent)
      removals.push(() => own.remove(webhookId))
    }
    removals.push(() => own.close())
    await createWallet({ admin: system.admin, workspaceId })
  }
  await startCourier({ COURIER_ATTEMPTS: String(attempts) })
  // Each gets a seventh of those that are free: 8, 8, 6 and 4 if one after another.
  await until('they have as many attempts in progress as they may', () => silent.maxInProgress >= 23)
  const webhookId = await subscribe(await receive())
  await transferTimes(1)
  await delivered(webhookId)
  // After a time-out, others of their webhooks would have begun.
  expect(silent.received.length).toBeLessThanOrEqual(attempts / 2)
  release()
  for (const remove of removals) await remove()
})

test('after a change, the attempt in progress ends, and no other is made with the old URL and secret', async () => {
  let release = () => {}
  const old = await receive(() => new Promise(resolve => (release = () => resolve(200))))
  const webhookId = await subscribe(old)
  const start = await webhooks.head()
  await transferTimes(5)
  await startCourier()
  await until('the first event arrives', () => old.received.length === 1)
  const current = await receive()
  current.secrets.push(await webhooks.rotate(webhookId))
  await webhooks.update(webhookId, { url: current.url })
  const calls = () => readMetric(system.coreUrl, 'core_call_duration_seconds_count{path="courier.lease",code="ok"}')
  const before = await calls()
  // A call that had begun may have read the webhook before the change.
  await until('the courier knows of the change', async () => (await calls()) >= before + 2)
  release()
  await delivered(webhookId)
  expect(positionsOf(old)).toEqual([start + 1])
  expect(positionsOf(current)).toEqual(range(start + 1, start + 5))
  expect(current.forged).toEqual([])
})

test('TLS certificates are verified, and the proxies of the environment are not used', async () => {
  const [trusted, unknown] = await Promise.all([makeCertificate('localhost'), makeCertificate('localhost')])
  const [good, bad, proxy] = [
    await startReceiver(() => 200, trusted),
    await startReceiver(() => 200, unknown),
    await startReceiver(),
  ]
  receivers.push(good, bad, proxy)
  const [goodId, badId] = [await subscribe(good), await subscribe(bad)]
  const courier = await startCourier({
    NODE_EXTRA_CA_CERTS: trusted.file,
    NODE_TLS_REJECT_UNAUTHORIZED: '0',
    // Node warns of that in lines that are no JSON.
    NODE_NO_WARNINGS: '1',
    NODE_USE_ENV_PROXY: '1',
    HTTP_PROXY: new URL(proxy.url).origin,
    HTTPS_PROXY: new URL(proxy.url).origin,
  })
  await transferTimes(2)
  await delivered(goodId)
  expect(successesOf(good)).toHaveLength(2)
  expect(await failing(badId)).toMatchObject({ lastStatus: null, lastError: 'TLS' })
  expect([bad.received, proxy.received, proxy.forged]).toEqual([[], [], []])
  const line = await until('the failure is logged', () =>
    logLines(courier).find(({ msg }) => msg === 'a delivery failed'),
  )
  expect(line).toMatchObject({ webhookId: badId, result: 'tls', code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
  const { internalUrl } = courier
  expect(await readMetric(internalUrl, 'courier_attempt_duration_seconds_count{result="success"}')).toBe(2)
  // The failed event is repeated every few seconds.
  expect(await readMetric(internalUrl, 'courier_attempt_duration_seconds_count{result="tls"}')).toBeGreaterThan(0)
  await until('no attempt is in progress', async () => (await readMetric(internalUrl, 'courier_attempts')) === 0)
})

test('a name that leads to an address that is not allowed is a failure, and nothing is connected', async () => {
  const receiver = await startReceiver(() => 200, await makeCertificate('localhost'))
  receivers.push(receiver)
  const webhookId = await subscribe(receiver)
  const courier = await startCourier({ WEBHOOK_ALLOWED_NETWORKS: '10.0.0.0/8' })
  await transferTimes(1)
  expect(await failing(webhookId)).toMatchObject({ lastStatus: null, lastError: 'ADDRESS', status: 'ACTIVE' })
  const line = await until('the failure is logged', () =>
    logLines(courier).find(({ msg }) => msg === 'a delivery failed'),
  )
  expect(line).toMatchObject({ webhookId, result: 'refused', code: 'ADDRESS_NOT_ALLOWED' })
})

test('logs have each attempt at the level debug, without what only the receiver may know', async () => {
  const secretPath = `secret-${randomUUID()}`
  const receiver = await receive(() => 500)
  const webhookId = await subscribe({
    url: `${receiver.url}/${secretPath}?token=${secretPath}`,
    secrets: receiver.secrets,
  })
  const courier = await startCourier({ LOG_LEVEL: 'debug' })
  await transferTimes(1)
  await failing(webhookId)
  const line = await until('the attempt is logged', () =>
    logLines(courier).find(({ msg }) => msg === 'an event was sent'),
  )
  const { position, eventId } = receiver.received[0]!.event
  expect(receiver.received[0]!.path).toContain(`?token=${secretPath}`)
  expect(line).toMatchObject({ webhookId, position, result: 'status', status: 500 })
  const text = courier.output()
  for (const hidden of [secretPath, eventId, receiver.secrets[0]!, 'v1,', system.courierToken])
    expect(text).not.toContain(hidden)
})

test('after SIGTERM, a courier finishes and reports the delivery in progress, and begins no other', async () => {
  let release = () => {}
  const receiver = await receive(() => new Promise(resolve => (release = () => resolve(200))))
  const webhookId = await subscribe(receiver)
  const start = await webhooks.head()
  await transferTimes(3)
  const courier = await startCourier()
  await until('the first event arrives', () => receiver.received.length === 1)
  const stopped = courier.stop()
  const readiness = () => fetch(`${courier.internalUrl}/readyz`)
  await until('the courier is not ready', async () => (await readiness()).status === 503)
  expect(await (await readiness()).json()).toMatchObject({ status: 'stopping', parts: { core: { up: true } } })
  release()
  expect(await stopped).toBe(0)
  expect(positionsOf(receiver)).toEqual([start + 1])
  expect(await webhooks.get(webhookId)).toMatchObject({ position: start + 1, lastStatus: 200 })
})

test('a courier without core is not ready, and works as soon as core is there', async () => {
  const receiver = await receive()
  const webhookId = await subscribe(receiver)
  await transferTimes(1)
  const { port } = system.cores[0]!
  await system.cores[0]!.kill('SIGKILL')
  const courier = await startCourier({ CORE_URL: system.coreUrl })
  const readiness = async () => (await fetch(`${courier.internalUrl}/readyz`)).json() as Promise<{ status: string }>
  expect(await readiness()).toMatchObject({ status: 'not ready', parts: { core: { up: false } } })
  await system.startCore({ CORE_PORT: String(port) })
  await delivered(webhookId)
  await until('the courier is ready', async () => (await readiness()).status === 'ready')
  expect(await readiness()).toEqual({ status: 'ready', parts: { core: { up: true } } })
  expect((await fetch(`${courier.internalUrl}/healthz`)).status).toBe(200)
  expect((await fetch(`${courier.internalUrl}/other`)).status).toBe(404)
})
