/** verifyWebhook and the published library of Standard Webhooks. test/shop.test.ts verifies what couriers deliver. */
import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { verifyWebhook, type WebhookToVerify, WebhookVerificationError } from './index.ts'

const now = 1_800_000_000_000
const secret = newSecret()
const event = { eventId: 'evt_1', position: 7, type: 'hold.released', data: { remark: 'Grüße, 银行' } }
const body = JSON.stringify(event)

function newSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}

/** The signature of the published library. */
function signatureOf(text = body, { by = secret, id = event.eventId, at = now } = {}): string {
  return new Webhook(by).sign(id, new Date(at), text)
}

function headersOf(changes: Record<string, string | undefined> = {}): Record<string, string | undefined> {
  const seconds = String(Math.floor(now / 1000))
  const headers = { 'webhook-id': event.eventId, 'webhook-timestamp': seconds, 'webhook-signature': signatureOf() }
  return { ...headers, ...changes }
}

function verify(changes: Partial<WebhookToVerify> = {}) {
  return verifyWebhook({ secret, headers: headersOf(), body, now, ...changes })
}

async function errorOf(changes: Partial<WebhookToVerify>): Promise<unknown> {
  return verify(changes).then(
    () => expect.unreachable('the delivery was accepted'),
    (error: unknown) => error,
  )
}

async function expectFault(fault: string, changes: Partial<WebhookToVerify>): Promise<void> {
  const error = await errorOf(changes)
  expect(error).toBeInstanceOf(WebhookVerificationError)
  expect(error).toMatchObject({ name: 'WebhookVerificationError', fault, message: expect.stringMatching(/^The |^No /) })
}

test('what the published library signs is accepted, as text and as bytes, with the headers of Node and of fetch', async () => {
  expect(await verify()).toEqual(event)
  expect(await verify({ body: Buffer.from(body) })).toEqual(event)
  expect(await verify({ body: new TextEncoder().encode(body) })).toEqual(event)
  expect(await verify({ headers: new Headers(headersOf() as Record<string, string>) })).toEqual(event)
  expect(await verify({ headers: { 'Webhook-Id': 'evt_1', ...headersOf({ 'webhook-id': undefined }) } })).toEqual(event)
  expect(await verify({ headers: { ...headersOf(), 'webhook-signature': [signatureOf()] } })).toEqual(event)
})

test('any secret and any text: exactly what the library signed is accepted', async () => {
  const bytes = fc.uint8Array({ minLength: 24, maxLength: 64 })
  await fc.assert(
    fc.asyncProperty(bytes, fc.string({ unit: 'grapheme' }), fc.nat(), async (key, remark, at) => {
      const by = `whsec_${Buffer.from(key).toString('base64')}`
      const text = JSON.stringify({ ...event, remark })
      const signature = signatureOf(text, { by })
      expect(await verify({ secret: by, body: text, headers: headersOf({ 'webhook-signature': signature }) })).toEqual({
        ...event,
        remark,
      })
      const changed = Buffer.from(text)
      changed[at % changed.length]! ^= 1
      const headers = headersOf({ 'webhook-signature': signature })
      await expectFault('SIGNATURE_INVALID', { secret: by, body: changed, headers })
    }),
    { numRuns: 50 },
  )
})

test('during a rotation, either of two secrets and either of two signatures is enough', async () => {
  const [older, newer] = [newSecret(), newSecret()]
  const both = `${signatureOf(body, { by: newer })} ${signatureOf(body, { by: older })}`
  for (const known of [older, newer, [older, newer], [newSecret(), newer]])
    expect(await verify({ secret: known, headers: headersOf({ 'webhook-signature': both }) })).toEqual(event)
  const onlyNewer = headersOf({ 'webhook-signature': signatureOf(body, { by: newer }) })
  await expectFault('SIGNATURE_INVALID', { secret: older, headers: onlyNewer })
  const others = headersOf({ 'webhook-signature': `v1a,AAAA v2,AAAA v1,AAAA ${signatureOf()}` })
  expect(await verify({ headers: others })).toEqual(event)
})

test.each(['webhook-id', 'webhook-timestamp', 'webhook-signature'])(
  'without %s, it says which one is missing',
  async name => {
    for (const value of [undefined, ''])
      expect(await errorOf({ headers: headersOf({ [name]: value }) })).toMatchObject({
        fault: 'HEADER_MISSING',
        message: expect.stringContaining(name),
      })
  },
)

test.each([
  ['webhook-timestamp', '2026-11-22T00:00:00Z'],
  ['webhook-timestamp', '-1'],
  ['webhook-timestamp', '1e9'],
  ['webhook-signature', 'v2,AAAA'],
  ['webhook-signature', 'AAAA'],
  ['webhook-signature', 'v1,'],
  ['webhook-signature', 'v1,!'],
])('%s: %s is invalid', async (name, value) => {
  await expectFault('HEADER_INVALID', { headers: headersOf({ [name]: value }) })
})

test('a header that was sent twice is invalid', async () => {
  const twice = { ...headersOf(), 'webhook-id': ['evt_1', 'evt_2'] }
  await expectFault('HEADER_INVALID', { headers: twice })
})

test('an ID or a time that was not signed is found out', async () => {
  await expectFault('SIGNATURE_INVALID', { headers: headersOf({ 'webhook-id': 'evt_2' }) })
  await expectFault('SIGNATURE_INVALID', { headers: headersOf({ 'webhook-timestamp': String(now / 1000 + 1) }) })
  await expectFault('SIGNATURE_INVALID', { secret: newSecret() })
  await expectFault('SIGNATURE_INVALID', { body: JSON.stringify(event, null, 1) })
})

test('the time may differ by five minutes, or as much as the receiver says', async () => {
  for (const offset of [-300_000, 300_000]) expect(await verify({ now: now + offset })).toEqual(event)
  await expectFault('TIMESTAMP_TOO_OLD', { now: now + 301_000 })
  await expectFault('TIMESTAMP_TOO_NEW', { now: now - 301_000 })
  expect(await verify({ now: now + 600_000, toleranceSeconds: 600 })).toEqual(event)
  await expectFault('TIMESTAMP_TOO_OLD', { now: now + 2_000, toleranceSeconds: 1 })
})

test('a signed body that is not the event of webhook-id is rejected', async () => {
  for (const text of ['', 'null', '[]', '"evt_1"', '{"eventId":"evt_2"}', '{'])
    await expectFault('BODY_INVALID', { body: text, headers: headersOf({ 'webhook-signature': signatureOf(text) }) })
})

test('a mistake of the program is a TypeError that does not contain the secret', async () => {
  for (const wrong of ['', 'hunter2', 'whsec_', 'whsec_hunter2*', undefined as never]) {
    const error = await errorOf({ secret: wrong })
    expect(error).toBeInstanceOf(TypeError)
    expect((error as Error).message).toMatch(/^secret must be the text that the service returned/)
    expect((error as Error).message).not.toContain('hunter2')
  }
  expect(await errorOf({ secret: [] })).toBeInstanceOf(TypeError)
  expect(await errorOf({ body: event as never })).toMatchObject({
    message: expect.stringMatching(/^body must be the bytes/),
  })
})
