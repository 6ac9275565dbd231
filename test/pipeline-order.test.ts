import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Credentials, call, createPath, type Overrides } from './setup/client.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { createTenant } from './setup/workspaces.ts'

/**
 * Section 5.3: the order of the checks as a client observes it. Each fault makes one thing of a valid request invalid. Of
 * every two faults, the one that is checked first decides.
 */
type Fault = {
  name: string
  code: string
  /** Faults with the same axis cannot be combined. */
  axis: string
  /** Options of the key when it is created. */
  key?: { ips?: string[]; scopes?: ('wallet:read' | 'transfer:create')[] }
  /** Changes the key after its first request. */
  changeKey?: (system: System, key: { workspaceId: string; apiKey: string }) => Promise<unknown>
  changeRequest?: (request: Request) => void
}

type Request = { path: string; body: string; overrides: Overrides & { headers: Record<string, string | null> } }

const faults: Fault[] = [
  { name: 'no key', code: 'GA2001', axis: 'key', changeRequest: r => (r.overrides.headers['X-Api-Key'] = null) },
  {
    name: 'unknown key',
    code: 'GA2011',
    axis: 'key',
    changeRequest: r => (r.overrides.headers['X-Api-Key'] = 'ak_01h455vb4pex5vsknk084sn02q'),
  },
  {
    name: 'disabled key',
    code: 'GA2021',
    axis: 'status',
    changeKey: (system, { apiKey }) => system.admin.apiKeys.disable.mutate({ apiKey }),
  },
  {
    name: 'workspace gone',
    code: 'GA2032',
    axis: 'workspace',
    changeKey: (system, { workspaceId }) => system.admin.workspaces.delete.mutate({ workspaceId }),
  },
  {
    name: 'owner not a member',
    code: 'GA2034',
    axis: 'member',
    changeKey: (system, { workspaceId }) => system.admin.members.remove.mutate({ workspaceId, userId: 'owner' }),
  },
  {
    name: 'stale timestamp',
    code: 'GA2013',
    axis: 'timestamp',
    changeRequest: r => (r.overrides.timestamp = '1000000000'),
  },
  { name: 'too large', code: 'S013', axis: 'body', changeRequest: r => (r.body = `"${'x'.repeat(70_000)}"`) },
  { name: 'used nonce', code: 'GA2013', axis: 'nonce', changeRequest: r => (r.overrides.nonce = 'used-before') },
  {
    name: 'malformed nonce',
    code: 'GA2013',
    axis: 'nonce',
    changeRequest: r => (r.overrides.headers['X-Nonce'] = 'a b'),
  },
  {
    name: 'wrong signature',
    code: 'GA2012',
    axis: 'signature',
    changeRequest: r => (r.overrides.headers['X-Signature'] = `${'A'.repeat(43)}=`),
  },
  { name: 'address not listed', code: 'GA2022', axis: 'address', key: { ips: ['203.0.113.7'] } },
  { name: 'scope missing', code: 'GA2024', axis: 'scope', key: { scopes: ['wallet:read'] } },
  { name: 'no such endpoint', code: '50090201', axis: 'scope', changeRequest: r => (r.path = '/api/v1/nowhere') },
  {
    name: 'not JSON by its type',
    code: 'S015',
    axis: 'type',
    changeRequest: r => (r.overrides.headers['Content-Type'] = 'text/plain'),
  },
  { name: 'not JSON', code: 'S012', axis: 'body', changeRequest: r => (r.body = '{"amount":') },
]

let system: System
beforeAll(async () => {
  system = await startSystem()
})
afterAll(() => system.stop())

describe('of two faults, the one that is checked first decides', () => {
  const pairs = faults.flatMap((first, at) =>
    faults.slice(at + 1).flatMap(second => (second.axis === first.axis ? [] : [[first, second] as const])),
  )
  // Two faults with the same code cannot be told apart.
  const distinguishable = pairs.filter(([first, second]) => first.code !== second.code)

  test.for(distinguishable.map(([first, second]) => ({ first, second, name: `${first.name} before ${second.name}` })))(
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

/** Creates a key, uses it once, changes it, and returns the code of a request with these faults. */
async function send(combined: Fault[]): Promise<string> {
  const credentials = await createTenant(system, {
    scopes: combined.find(({ key }) => key?.scopes)?.key?.scopes ?? ['transfer:create'],
    ipAllowlist: combined.find(({ key }) => key?.ips)?.key?.ips ?? [],
  })
  await call(credentials, 'GET', '/api/v1/wallets', undefined, { nonce: 'used-before' })
  await changeKey(
    credentials,
    combined.filter(({ changeKey }) => changeKey),
  )

  const request: Request = { path: createPath, body: '{}', overrides: { headers: {} } }
  for (const { changeRequest } of combined) changeRequest?.(request)
  const answer = await call(credentials, 'POST', request.path, request.body, request.overrides)
  expect(answer.body).toMatchObject({ version: '1.3.0', success: false, data: null })
  return answer.body.code
}

/**
 * Changes a key, that of the latest step first: a deleted workspace has no members to remove. Waits until each change is
 * in force.
 */
async function changeKey(credentials: Credentials & { workspaceId: string }, changes: Fault[]): Promise<void> {
  for (const fault of changes.toReversed()) {
    await fault.changeKey!(system, credentials)
    await until(`${fault.code} is in force`, async () => {
      const { body } = await call(credentials, 'GET', '/api/v1/wallets', undefined, { nonce: randomUUID() })
      return body.code === fault.code
    })
  }
}
