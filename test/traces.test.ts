/** Traces of real programs, in a collector that decodes OTLP. */
import { randomBytes, randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { packBatch } from '@workspace-wallet/contract'
import { spanAttributes } from '@workspace-wallet/runtime/tracing'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sendBatch } from './setup/batches.ts'
import { call, createPath } from './setup/client.ts'
import { type Collector, type ReceivedSpan, startCollector } from './setup/collector.ts'
import { transferOrder } from './setup/order.ts'
import { type Receiver, startReceiver } from './setup/receiver.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { type Webhooks, webhooksOf } from './setup/webhooks.ts'

let collector: Collector
let environment: NodeJS.ProcessEnv
let system: System
let webhooks: Webhooks
let receiver: Receiver
const traceparentsOfDeliveries: unknown[] = []
beforeAll(async () => {
  collector = await startCollector()
  environment = {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20for-the-collector',
    OTEL_BSP_SCHEDULE_DELAY: '50',
    OTEL_TRACES_SAMPLER: 'parentbased_always_off',
  }
  const gatewayEnvironment = { ...environment, TRACEPARENTS_PER_SECOND: '100000' }
  system = await startSystem({ coreEnvironment: environment, gatewayEnvironment })
  receiver = await startReceiver((_event, { headers }) => {
    traceparentsOfDeliveries.push(headers.traceparent)
    return 204
  })
  webhooks = webhooksOf(system)
  await webhooks.create(receiver)
  await system.startCourier({ ...environment, OTEL_TRACES_SAMPLER: 'parentbased_always_on' })
})
afterAll(async () => {
  await webhooks?.close()
  await system?.stop()
  await receiver?.stop()
  await collector?.stop()
})

const newTraceId = () => randomBytes(16).toString('hex')
const newSpanId = () => randomBytes(8).toString('hex')

/** Makes a transfer. Returns its ID, and what identifies its request. */
async function transfer(
  headers: Record<string, string>,
  order = {},
  baseUrl = system.baseUrl,
): Promise<{ transferId: string; requestId: string }> {
  const input = transferOrder(system, order)
  // On a busy machine, the service may answer that it could not do it now.
  const { body, headers: answered } = await until('the transfer is not S002', async () => {
    const answer = await call({ ...system, baseUrl }, 'POST', createPath, input, { headers })
    return answer.body.code !== 'S002' && answer
  })
  expect(body.code).toBe('2000')
  return { transferId: body.data.transferId, requestId: answered.get('x-request-id')! }
}

/** The spans of a trace, once a program has sent one with this name. */
async function traceWith(traceId: string, ...names: string[]): Promise<ReceivedSpan[]> {
  const read = () => collector.spans.filter(span => span.traceId === traceId)
  await until(`the trace ${traceId} has ${names}`, () => names.every(name => read().some(span => span.name === name)))
  return read()
}

const created = ['POST /api/v1/transfer/command/create', 'send batch', 'transfers.create', 'post batch'] as const

test('a transfer is one trace, from the request of the client to the transaction that posts it', async () => {
  const [traceId, spanId] = [newTraceId(), newSpanId()]
  const { transferId, requestId } = await transfer({
    traceparent: `00-${traceId}-${spanId}-01`,
    tracestate: 'vendor=private',
  })
  const spans = await traceWith(traceId, ...created, 'authenticate')
  const of = (service: string, name: string) => spans.find(span => span.service === service && span.name === name)!
  const request = of('wallet-gateway', created[0])
  const outgoing = of('wallet-gateway', 'transfers.create')
  const incoming = of('wallet-core', 'transfers.create')
  const batch = of('wallet-core', 'post batch')
  const commit = spans.find(({ name }) => name.startsWith('commit '))!
  const path = [request, outgoing, incoming, batch, commit]
  expect(path.map(({ parentSpanId }) => parentSpanId)).toEqual([spanId, ...path.slice(0, -1).map(span => span.spanId)])
  expect(of('wallet-gateway', 'send batch').parentSpanId).toBe(outgoing.spanId)
  expect(of('wallet-gateway', 'authenticate').parentSpanId).toBe(request.spanId)
  expect(request.attributes).toEqual({
    'http.request.method': 'POST',
    'http.route': createPath,
    'http.response.status_code': '200',
    'wallet.request.id': requestId,
    'wallet.transfer.id': transferId,
    'wallet.workspace.id': system.workspaceId,
  })
  expect(incoming.attributes).toMatchObject({ 'rpc.method': 'transfers.create', 'wallet.request.id': requestId })
  expect(commit.attributes).toMatchObject({ 'db.system.name': 'postgresql' })
  const authenticating = of('wallet-gateway', 'authenticate')
  expect(authenticating.endNanos).toBeGreaterThan(authenticating.startNanos)
  expect(spans.filter(({ traceState }) => traceState !== '')).toEqual([])
  expect(collector.headers[0]).toMatchObject({ authorization: 'Bearer for-the-collector' })
})

test('a shared posting is linked with every request that it serves, in both directions', async () => {
  const traceIds = Array.from({ length: 8 }, newTraceId)
  // Another request may be in front of them: until they share a posting, they are sent again.
  const shared = await until('requests share a posting', async () => {
    await Promise.all(traceIds.map(traceId => transfer({ traceparent: `00-${traceId}-${newSpanId()}-01` })))
    return collector.spans.find(({ name, links }) => name === 'post batch' && links.length > 0)
  })
  for (const { traceId, spanId } of shared.links) {
    expect(traceIds).toContain(traceId)
    const linked = await until('the linked call', () => collector.spans.find(span => span.spanId === spanId))
    expect(linked).toMatchObject({ service: 'wallet-core', name: 'transfers.create' })
    expect(linked.links).toContainEqual({ traceId: shared.traceId, spanId: shared.spanId })
  }
})

test('traceparent headers that are malformed, or that ask for no trace, make none', async () => {
  const ignored = [
    '00-00000000000000000000000000000000-0000000000000000-01',
    `ff-${newTraceId()}-${newSpanId()}-01`,
    `00-${newTraceId().toUpperCase()}G-${newSpanId()}-01`,
    `00-${newTraceId()}-${newSpanId()}-01-more`,
    `01-${newTraceId()}-${newSpanId()}-01-${'x'.repeat(4000)}`,
    `00-${newTraceId()}-${newSpanId()}-00`,
    ', ',
  ]
  const requestIds: string[] = []
  for (const traceparent of ignored) requestIds.push((await transfer({ traceparent })).requestId)
  requestIds.push((await transfer({})).requestId)
  const traced = (await recordedSpans()).map(({ attributes }) => attributes['wallet.request.id'])
  expect(traced.filter(id => requestIds.includes(String(id)))).toEqual([])
})

/** Waits until the spans have arrived that the gateway and core have recorded by now. They are sent in order. */
async function recordedSpans(): Promise<ReceivedSpan[]> {
  const traceId = newTraceId()
  await transfer({ traceparent: `00-${traceId}-${newSpanId()}-01` })
  await traceWith(traceId, ...created)
  return collector.spans
}

test('a client cannot have more requests recorded than the limit; further ones begin traces of their own', async () => {
  const limited = await system.startGateway({
    TRACEPARENTS_PER_SECOND: '1',
    OTEL_TRACES_SAMPLER: 'parentbased_always_on',
  })
  const parents = Array.from({ length: 40 }, () => ({ traceId: newTraceId(), spanId: newSpanId() }))
  const startedAtMs = performance.now()
  await Promise.all(
    parents.map(({ traceId, spanId }) => transfer({ traceparent: `00-${traceId}-${spanId}-01` }, {}, limited.url)),
  )
  const seconds = (performance.now() - startedAtMs) / 1000
  // A gateway that stops sends what it has recorded.
  expect(await limited.stop()).toBe(0)
  const spanOf = ({ traceId, spanId }: (typeof parents)[number]) =>
    collector.spans.find(
      span => span.name === created[0] && (span.traceId === traceId || span.links[0]?.spanId === spanId),
    )!
  const continued = parents.filter(parent => spanOf(parent).traceId === parent.traceId)
  expect(continued.length).toBeGreaterThan(0)
  expect(continued.length).toBeLessThanOrEqual(1 + Math.ceil(seconds))
  for (const parent of parents.filter(each => !continued.includes(each)))
    expect(spanOf(parent)).toMatchObject({ parentSpanId: '', links: [parent] })
})

test('a request without a valid signature is not recorded', async () => {
  const traceId = newTraceId()
  const headers = { traceparent: `00-${traceId}-${newSpanId()}-01` }
  const { status } = await call(system, 'GET', '/api/v1/wallets', undefined, { headers, secret: 'wrong' })
  expect(status).toBe(401)
  expect((await recordedSpans()).filter(span => span.traceId === traceId)).toEqual([])
})

test('a refused request has its code, and is no fault of the service', async () => {
  const traceId = newTraceId()
  const headers = { traceparent: `00-${traceId}-${newSpanId()}-01` }
  await call(system, 'POST', createPath, transferOrder(system, { amount: '5000.00' }), { headers })
  const spans = await traceWith(traceId, ...created)
  const codes = spans.flatMap(({ attributes }) => attributes['error.type'] ?? [])
  // Of the gateway, of its call, and of core.
  expect(codes).toEqual(['T002', 'T002', 'T002'])
  expect(spans.filter(({ hasFailed }) => hasFailed)).toEqual([])
})

test('a delivery begins a trace, which its receiver can continue', async () => {
  const { transferId } = await transfer({})
  const eventId = transferId.replace('trf_', 'evt_')
  const span = await until('the delivery', () =>
    collector.spans.find(({ attributes }) => attributes['wallet.event.id'] === eventId),
  )
  expect(span).toMatchObject({ service: 'wallet-courier', name: 'deliver event', parentSpanId: '' })
  expect(span.attributes).toMatchObject({
    'http.request.method': 'POST',
    'http.response.status_code': '204',
    'server.address': '127.0.0.1',
    'wallet.workspace.id': system.workspaceId,
  })
  expect(traceparentsOfDeliveries).toContain(`00-${span.traceId}-${span.spanId}-01`)
})

test('calls that are not on a workspace are not recorded under one', async () => {
  const traceId = newTraceId()
  const input = { instanceId: randomUUID(), workspaceId: system.workspaceId }
  const leave = {
    path: 'instances.leave',
    type: 'mutation',
    input,
    traceparent: `00-${traceId}-${newSpanId()}-01`,
  } as const
  expect((await sendBatch(system.coreUrl, system.courierToken, packBatch([leave]))).status).toBe(200)
  const [span] = await traceWith(traceId, leave.path)
  expect(span!.attributes).toMatchObject({ 'rpc.method': leave.path })
  expect(span!.attributes).not.toHaveProperty('wallet.workspace.id')
})

test('histograms have exemplars that lead to traces, for scrapers that ask for OpenMetrics', async () => {
  const traceId = newTraceId()
  await transfer({ traceparent: `00-${traceId}-${newSpanId()}-01` })
  const urls = [system.gateways[0]!.internalUrl!, system.coreUrl]
  const scrape = (url: string, accept: string) =>
    fetch(`${url}/metrics`, { headers: { accept } }).then(async response => ({
      type: response.headers.get('content-type'),
      text: await response.text(),
    }))
  for (const url of urls) {
    const openMetrics = await scrape(url, 'application/openmetrics-text;version=1.0.0,text/plain;q=0.5')
    expect(openMetrics.type).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8')
    expect(openMetrics.text).toMatch(
      /_duration_seconds_bucket\{.*\} \d+ # \{trace_id="[\da-f]{32}",span_id="[\da-f]{16}"\} /,
    )
    expect(openMetrics.text.endsWith('\n# EOF\n')).toBe(true)
    const plain = await scrape(url, 'text/plain')
    expect(plain.type).toBe('text/plain; version=0.0.4; charset=utf-8')
    expect(plain.text).not.toContain('trace_id')
    // Names of counters end alike in both formats.
    expect(plain.text).toMatch(/^process_cpu_user_seconds_total \d/m)
    expect(openMetrics.text).toMatch(/^process_cpu_user_seconds_total \d/m)
  }
})

test('what is exported contains no secret, amount or text of a client', async () => {
  const remark = 'private remark of this test'
  const reference = 'private-reference'
  const bizId = `private-${randomUUID()}`
  const amount = '3.14'
  const traceId = newTraceId()
  const traceparent = `00-${traceId}-${newSpanId()}-01`
  await transfer({ traceparent }, { remark, reference, bizId, amount })
  await traceWith(traceId, ...created)
  const { apiKey, apiSecret, chainKey, gatewayToken, serviceToken, courierToken, adminToken, fundingToken } = system
  const secrets = [apiSecret, chainKey, gatewayToken, serviceToken, courierToken, adminToken, fundingToken]
  const texts = [
    ...secrets,
    ...receiver.secrets,
    apiKey,
    remark,
    reference,
    bizId,
    amount,
    '0.01',
    '1000.00',
    'Savings',
  ]
  const walletIds = system.wallets.map(({ walletId }) => walletId)
  const exported = Buffer.concat(collector.bodies)
  for (const text of [...texts, ...walletIds, receiver.url, 'webhook-signature', 'for-the-collector'])
    expect(exported.includes(text), text).toBe(false)
  const names = new Set(collector.spans.flatMap(({ attributes }) => Object.keys(attributes)))
  expect(spanAttributes).toEqual(expect.arrayContaining([...names]))
  expect(collector.spans.filter(({ events }) => events.length > 0)).toEqual([])
})

test('docs/traces.md lists all attributes, and no others', async () => {
  const page = await readFile(new URL('../docs/traces.md', import.meta.url), 'utf8')
  const rows = page.match(/^\| `(?:db|error|http|rpc|server|wallet)\..+ \|/gm)!
  const listed = rows.flatMap(row => Array.from(row.split('|')[1]!.matchAll(/`([^`]+)`/g), ([, name]) => name))
  expect(listed.toSorted()).toEqual(spanAttributes.toSorted())
})
