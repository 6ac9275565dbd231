import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Credentials, call, createPath, type Overrides } from './setup/client.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'

/**
 * Section 5.3: the order of the checks is what a client can observe. Each fault spoils one thing of an otherwise good
 * request; of every two faults the earlier one must win.
 */
type Fault = {
  name: string
  code: string
  /** Faults on one axis cannot be combined. */
  axis: string
  /** At issue. */
  key?: { ips?: string[]; scopes?: ('wallet:read' | 'transfer:create')[] }
  /** After the key has worked. */
  spoilKey?: (system: System, key: { workspaceId: string; apiKey: string }) => Promise<unknown>
  request?: (request: Request) => void
}

type Request = { path: string; body: string; overrides: Overrides & { headers: Record<string, string | null> } }

const faults: Fault[] = [
  { name: 'no key', code: 'GA2001', axis: 'key', request: r => (r.overrides.headers['X-Api-Key'] = null) },
  {
    name: 'unknown key',
    code: 'GA2011',
    axis: 'key',
    request: r => (r.overrides.headers['X-Api-Key'] = 'ak_01h455vb4pex5vsknk084sn02q'),
  },
  {
    name: 'disabled key',
    code: 'GA2021',
    axis: 'status',
    spoilKey: (system, { apiKey }) => system.admin.apiKeys.disable.mutate({ apiKey }),
  },
  {
    name: 'workspace gone',
    code: 'GA2032',
    axis: 'workspace',
    spoilKey: (system, { workspaceId }) => system.admin.workspaces.delete.mutate({ workspaceId }),
  },
  {
    name: 'owner no member',
    code: 'GA2034',
    axis: 'member',
    spoilKey: (system, { workspaceId }) => system.admin.members.remove.mutate({ workspaceId, userId: 'owner' }),
  },
  { name: 'stale timestamp', code: 'GA2013', axis: 'timestamp', request: r => (r.overrides.timestamp = '1000000000') },
  { name: 'too large', code: 'S013', axis: 'body', request: r => (r.body = `"${'x'.repeat(70_000)}"`) },
  { name: 'used nonce', code: 'GA2013', axis: 'nonce', request: r => (r.overrides.nonce = 'used-before') },
  { name: 'malformed nonce', code: 'GA2013', axis: 'nonce', request: r => (r.overrides.headers['X-Nonce'] = 'a b') },
  {
    name: 'wrong signature',
    code: 'GA2012',
    axis: 'signature',
    request: r => (r.overrides.headers['X-Signature'] = `${'A'.repeat(43)}=`),
  },
  { name: 'address not listed', code: 'GA2022', axis: 'address', key: { ips: ['203.0.113.7'] } },
  { name: 'scope missing', code: 'GA2024', axis: 'scope', key: { scopes: ['wallet:read'] } },
  { name: 'no such endpoint', code: '50090201', axis: 'scope', request: r => (r.path = '/api/v1/nowhere') },
  {
    name: 'not JSON by its type',
    code: 'S015',
    axis: 'type',
    request: r => (r.overrides.headers['Content-Type'] = 'text/plain'),
  },
  { name: 'not JSON', code: 'S012', axis: 'body', request: r => (r.body = '{"amount":') },
]

let system: System
beforeAll(async () => {
  system = await startSystem()
})
afterAll(() => system.stop())

describe('of two faults the earlier one wins', () => {
  const pairs = faults.flatMap((first, at) =>
    faults.slice(at + 1).flatMap(second => (second.axis === first.axis ? [] : [[first, second] as const])),
  )
  // Both codes tell that the first fault was found before the second: a pair with one code could not.
  const told = pairs.filter(([first, second]) => first.code !== second.code)

  test.for(told.map(([first, second]) => ({ first, second, name: `${first.name} before ${second.name}` })))(
    '$name',
    async ({ first, second }) => {
      const answer = await send([first, second])
      expect(answer).toBe(first.code)
    },
  )
})

test.for(faults)('$name alone: $code', async fault => {
  expect(await send([fault])).toBe(fault.code)
})

/** Issues a key, uses it once, spoils it, and returns the code of a request with these faults. */
async function send(spoils: Fault[]): Promise<string> {
  const { workspaceId } = await system.admin.workspaces.create.mutate({ name: 'Order' })
  await system.admin.members.add.mutate({ workspaceId, userId: 'owner' })
  const issued = await system.admin.apiKeys.create.mutate({
    workspaceId,
    ownerUserId: 'owner',
    scopes: spoils.find(({ key }) => key?.scopes)?.key?.scopes ?? ['transfer:create'],
    ipAllowlist: spoils.find(({ key }) => key?.ips)?.key?.ips ?? [],
  })
  const credentials = { baseUrl: system.baseUrl, ...issued }
  await call(credentials, 'GET', '/api/v1/wallets', undefined, { nonce: 'used-before' })
  await spoilKey(
    credentials,
    spoils.filter(({ spoilKey }) => spoilKey),
    workspaceId,
  )

  const request: Request = { path: createPath, body: '{}', overrides: { headers: {} } }
  for (const { request: spoil } of spoils) spoil?.(request)
  const answer = await call(credentials, 'POST', request.path, request.body, request.overrides)
  expect(answer.body).toMatchObject({ version: '1.3.0', success: false, data: null })
  return answer.body.code
}

/** Spoils a key, the latest step first: a deleted workspace has no members to remove. Waits until it is in force. */
async function spoilKey(credentials: Credentials, spoils: Fault[], workspaceId: string): Promise<void> {
  for (const fault of spoils.toReversed()) {
    await fault.spoilKey!(system, { workspaceId, apiKey: credentials.apiKey })
    await until(`${fault.code} is in force`, async () => {
      const { body } = await call(credentials, 'GET', '/api/v1/wallets', undefined, { nonce: randomUUID() })
      return body.code === fault.code
    })
  }
}
