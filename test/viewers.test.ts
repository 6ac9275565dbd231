import { once } from 'node:events'
import { batchCallLimit, packBatch } from '@workspace-wallet/contract'
import { type CoreClient, checkpointLines, createCoreClient, verifyLedger } from '@workspace-wallet/core-client'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { openBatches } from './setup/batches.ts'
import { connect } from './setup/database.ts'
import { openConnection, requestText } from './setup/raw-http.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'

/** What a viewer does at a time is limited, however long the database takes. */

let system: System
/** Holds a lock. */
let owner: Awaited<ReturnType<typeof connect>>
/** In a transaction, PostgreSQL would show the sessions as they were when it first showed them. */
let observer: Awaited<ReturnType<typeof connect>>
const clients: CoreClient[] = []
beforeAll(async () => {
  system = await startSystem({ gateways: 0, waitsForLocks: true })
  owner = await connect(system.database.ownerUrl)
  observer = await connect(system.database.ownerUrl)
})
// After a test that fails while it holds a lock.
afterEach(() => owner.query('rollback'))
afterAll(async () => {
  await Promise.all([owner.end(), observer.end()])
  await Promise.all(clients.map(client => client.close()))
  await system.stop()
})

function clientOf(token: string): CoreClient {
  const client = createCoreClient({ url: system.coreUrl, token })
  clients.push(client)
  return client
}

async function newViewer(name: string): Promise<CoreClient> {
  const { token } = await system.admin.operators.create.mutate({ name, role: 'viewer' })
  return clientOf(token)
}

/** How many sessions of core with this name wait for a lock. */
async function waiting(application: string): Promise<number> {
  const statement = `select from pg_stat_activity
    where datname = current_database() and application_name = $1 and wait_event_type = 'Lock'`
  return (await observer.query(statement, [application])).rows.length
}

test('an operator exports one checkpoint at a time from a core', async () => {
  const [viewer, other] = [await newViewer('first'), await newViewer('second')]
  const exported = async (client: CoreClient) => {
    let parts = 0
    for await (const _ of await client.ledger.checkpoint.query({})) parts++
    return parts
  }
  await owner.query('begin; lock table wallet in access exclusive mode')
  const first = exported(viewer)
  await until('an export waits', async () => (await waiting('core checkpoint')) === 1)
  for (let count = 0; count < 3; count++)
    await expect(exported(viewer)).rejects.toThrow('You already export a checkpoint from this core')
  const second = exported(other)
  await until('the export of another operator waits', async () => (await waiting('core checkpoint')) === 2)
  await owner.query('commit')
  expect(await Promise.all([first, second])).toEqual([1, 1])
  expect(await exported(viewer)).toBe(1)
})

test('an export may follow another one as soon as it has the last part', async () => {
  const viewer = await newViewer('repeating')
  for (let count = 0; count < 50; count++)
    for await (const { part } of checkpointLines(viewer)) expect(part.part).toBe(0)
})

test.each(['ledger.verify', 'ledger.checkpoint'])(
  'a caller who disconnects while its token is looked up leaves nothing behind that runs for nobody: %s',
  async path => {
    const name = `gone-${path.replace('.', '-')}`
    const { token } = await system.admin.operators.create.mutate({ name, role: 'viewer' })
    const input = encodeURIComponent('{"0":{"json":{}}}')
    const headers = { Authorization: `Bearer ${token}`, 'trpc-accept': 'application/jsonl' }
    await owner.query('begin; lock table operator in access exclusive mode')
    const socket = await openConnection(system.coreUrl)
    socket.write(requestText('GET', `/trpc/${path}?batch=1&input=${input}`, headers))
    await until('the token is looked up', async () => (await waiting('core access')) === 1)
    socket.destroy()
    await owner.query('commit')
    const viewer = clientOf(token)
    await viewer.session.whoami.query()
    // If core learns of it only after the look-up, what has begun ends soon.
    const exported = async () => {
      for await (const _ of await viewer.ledger.checkpoint.query({}));
      return (await verifyLedger(viewer, {})).ok
    }
    await until('nothing else runs', () => exported().catch(() => false))
  },
)

test('the look-ups of a token, also of a disabled operator, leave a connection for those of gateways', async () => {
  const { token } = await system.admin.operators.create.mutate({ name: 'disabled', role: 'viewer' })
  await system.admin.operators.disable.mutate({ name: 'disabled' })
  await owner.query('begin; lock table operator in access exclusive mode')
  const sockets = await Promise.all(Array.from({ length: 8 }, () => openConnection(system.coreUrl)))
  for (const socket of sockets) {
    socket.write(requestText('GET', '/trpc/session.whoami', { Authorization: `Bearer ${token}` }))
    // Each in a turn of its own.
    expect(await system.gatewayClient.access.lookup.query({ apiKeys: [system.apiKey] })).toMatchObject({ keys: [{}] })
  }
  await until('a token is looked up', async () => (await waiting('core access')) > 0)
  expect(await waiting('core access')).toBe(1)
  const answers = sockets.map(
    async socket => String(await once(socket, 'data').then(([data]) => data)).split('\r\n')[0],
  )
  await owner.query('commit')
  expect(new Set(await Promise.all(answers))).toEqual(new Set(['HTTP/1.1 401 Unauthorized']))
  for (const socket of sockets) socket.destroy()
})

test('the bodies of an operator are decoded one at a time, also if they have waited for the same look-up of the token', async () => {
  const { token } = await system.admin.operators.create.mutate({ name: 'busy', role: 'viewer' })
  const links = await Promise.all(Array.from({ length: 4 }, () => openBatches(system.coreUrl, token)))
  const isAlive = async () => expect((await fetch(`${system.coreUrl}/healthz`)).status).toBe(200)
  const forbidden = { path: 'operators.create', type: 'mutation', input: {} } as const
  const body = packBatch(Array.from({ length: batchCallLimit }, () => forbidden))
  await owner.query('begin; lock table operator in access exclusive mode')
  let answered = 0
  const sent = Array.from({ length: 32 }, async (_, at) => {
    const { status } = await links[at % links.length]!.send(body)
    expect(status).toBe(200)
    answered++
  })
  const answers = Promise.all(sent)
  await until('the token is looked up', async () => (await waiting('core access')) > 0)
  // Each takes an iteration of the event loop at least, in which one of the bodies gets its turn.
  for (let count = 0; count < 2 * sent.length; count++) await isAlive()
  await owner.query('commit')
  const seen = new Set<number>()
  while (answered < sent.length) {
    await isAlive()
    seen.add(answered)
  }
  await answers
  expect(seen.size).toBeGreaterThan(6)
  for (const { socket } of links) socket.destroy()
})

test('the calls of viewers leave connections for others', async () => {
  const { workspaceId, wallets } = system
  const on = { workspaceId, caller: { requestId: 'r' } }
  const viewer = await newViewer('third')
  const service = clientOf(system.serviceToken)
  await owner.query('begin; lock table webhook in access exclusive mode')
  const listed = Promise.allSettled(Array.from({ length: 40 }, () => viewer.webhooks.list.query(on)))
  await until('a viewer waits', async () => (await waiting('core reads')) === 1)
  const balance = () => service.wallets.balance.query({ ...on, walletId: wallets[2]!.walletId })
  for (let count = 0; count < 10; count++) expect(await balance()).toMatchObject({ currency: 'EUR' })
  expect(await waiting('core reads')).toBe(1)
  await owner.query('commit')
  const answered = (await listed).filter(({ status }) => status === 'fulfilled')
  expect(answered.length).toBeGreaterThan(0)
})
