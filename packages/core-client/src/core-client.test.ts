import { spawn } from 'node:child_process'
import { getEventListeners, once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, Server as NetServer } from 'node:net'
import { type BatchAnswer, type BatchCall, batchCallLimit, mintId, packBatch } from '@workspace-wallet/contract'
import { frameKinds, packFrame } from '@workspace-wallet/runtime/batch-frames'
import { afterEach, describe, expect, test } from 'vitest'
import { type ReceivedBatch, serveBatches } from '../../../test/setup/batches.ts'
import { until } from '../../../test/setup/until.ts'
import { domainErrorOf } from './call-errors.ts'
import { type CoreClient, createCoreClient } from './core-client.ts'
import { CallAborted, CoreRejected, CoreUnreachable } from './errors.ts'

const servers: Server[] = []
const clients: CoreClient[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) server.close().closeAllConnections()
  await Promise.all(clients.splice(0).map(client => client.close()))
})

/** @param onBatch without it, no connection for batches is accepted */
async function listen(listener: RequestListener, onBatch?: (batch: ReceivedBatch) => void): Promise<string> {
  const server = createServer(listener)
  if (onBatch) serveBatches(server, onBatch)
  server.listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Nothing listens on this port, and the system gives it to no program. */
const addressWithoutServer = 'http://127.0.0.1:2'

function connect(...url: string[]): CoreClient {
  const client = createCoreClient({ url, token: 'x' })
  clients.push(client)
  return client
}

/** Answers health checks. */
const healthy: RequestListener = (_request, response) => void response.end('{}')

/** A core that records its batches. It answers each call with `answer`; without one, the test replies. */
async function startCore(answer?: (call: BatchCall) => unknown) {
  const batches: ReceivedBatch[] = []
  const url = await listen(healthy, received => {
    batches.push(received)
    if (answer) received.reply(received.calls.map(answer) as BatchAnswer[])
  })
  return { url, batches, paths: () => batches.flatMap(({ calls }) => calls.map(({ path }) => path)) }
}

/** The fake cores do not check input. */
const create = (client: CoreClient, name: unknown, signal?: AbortSignal) =>
  client.transfers.create.mutate({ workspaceId: name } as never, signal && { signal })
const balance = (client: CoreClient, signal?: AbortSignal) =>
  client.wallets.balance.query({} as never, signal && { signal })
const list = (client: CoreClient) => client.audit.list.query({} as never)
const succeeded = () => expect.fail('the call succeeded')
const causeOf = (call: Promise<unknown>) => call.then(succeeded, (error: Error) => error.cause)

describe('abort signals', () => {
  test('a queued call is not sent', async () => {
    const core = await startCore()
    const client = connect(core.url)
    const list = (name: string, signal?: AbortSignal) =>
      client.audit.list.query({ name } as never, signal && { signal })
    const sent: Promise<unknown>[] = []
    while (client.load().waiting === 0) {
      sent.push(list('sent'))
      await new Promise(setImmediate)
      await new Promise(setImmediate)
    }
    const abort = new AbortController()
    const aborted = causeOf(list('aborted', abort.signal))
    const other = list('other')
    expect(client.load().waiting).toBe(3)
    abort.abort('enough')
    expect(await aborted).toMatchObject({ name: 'CallAborted', sent: false, cause: 'enough' })
    expect(client.load().waiting).toBe(2)

    const names: unknown[] = []
    while (names.length < sent.length + 1) {
      await until('a batch has arrived', () => core.batches.length > 0)
      const batch = core.batches.shift()!
      names.push(...batch.calls.map(({ input }) => (input as { name: string }).name))
      batch.reply([{ data: names.at(-1) }])
    }
    expect(names).toEqual([...sent.map(() => 'sent'), 'other'])
    expect(await other).toBe('other')
    await Promise.all(sent)
  })

  test('a call that was sent fails, and the other calls of its batch get their answers', async () => {
    const core = await startCore()
    const client = connect(core.url)
    const calledAtMs = performance.now()
    const abort = new AbortController()
    const aborted = causeOf(create(client, 'aborted', abort.signal))
    const other = create(client, 'other')
    await until('the batch has arrived', () => core.batches.length === 1)
    abort.abort()
    const cause = (await aborted) as CallAborted
    expect(cause).toBeInstanceOf(CallAborted)
    expect(cause).toMatchObject({ sent: true, cause: { name: 'AbortError' } })
    expect(cause.sentAtMs).toBeGreaterThanOrEqual(calledAtMs)
    core.batches[0]!.reply([{ data: 'ignored' }, { data: 'done' }])
    expect(await other).toBe('done')
  })

  test('a batch is given up once all its calls are aborted, and later answers are ignored', async () => {
    const core = await startCore()
    const client = connect(core.url)
    const [first, second] = [new AbortController(), new AbortController()]
    const calls = [first, second].map(({ signal }) => causeOf(create(client, 'aborted', signal)))
    await until('the batch has arrived', () => core.batches.length === 1)
    first.abort()
    await calls[0]
    expect(client.load().inFlight).toBe(1)
    second.abort()
    expect(await calls[1]).toMatchObject({ name: 'CallAborted', sent: true })
    await until('the batch is over', () => client.load().inFlight === 0)
    core.batches[0]!.reply([{ data: 'late' }, { data: 'late' }])
    const other = create(client, 'other')
    await until('the next batch has arrived', () => core.batches.length === 2)
    core.batches[1]!.reply([{ data: 'done' }])
    expect(await other).toBe('done')
    expect(core.batches[1]!.socket).toBe(core.batches[0]!.socket)
  })

  test('a time-out is the cause of the error', async () => {
    const core = await startCore()
    const cause = await causeOf(create(connect(core.url), 'late', AbortSignal.timeout(50)))
    expect(cause).toMatchObject({ name: 'CallAborted', cause: { name: 'TimeoutError' } })
  })

  test('a call with an aborted signal is not sent', async () => {
    const core = await startCore(() => ({ data: null }))
    const client = connect(core.url)
    expect(await causeOf(create(client, 'aborted', AbortSignal.abort()))).toMatchObject({ sent: false })
    await create(client, 'other')
    expect(core.batches.map(({ calls }) => calls.length)).toEqual([1])
  })

  test('a call that has its answer leaves no listener on its signal', async () => {
    const core = await startCore(() => ({ data: null }))
    const { signal } = new AbortController()
    await create(connect(core.url), 'w', signal)
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  test('a call that is aborted while a core cannot be reached is not sent to another core', async () => {
    const core = await startCore(() => ({ data: null }))
    const client = connect(addressWithoutServer, core.url)
    for (let turn = 0; turn < 4; turn++) {
      const abort = new AbortController()
      const aborted = causeOf(balance(client, abort.signal))
      const other = balance(client)
      // The batch is being sent, and the socket has no result yet.
      await new Promise(setImmediate)
      abort.abort()
      expect(await aborted).toBeInstanceOf(CallAborted)
      await other
    }
    expect(core.batches.map(({ calls }) => calls.length)).toContain(1)
  })
})

test('each kind of read takes turns at the cores on its own', async () => {
  const cores = await Promise.all([1, 2].map(() => startCore(() => ({ data: null }))))
  const client = connect(...cores.map(({ url }) => url))
  for (let turn = 0; turn < 4; turn++) {
    await list(client)
    await balance(client)
  }
  for (const core of cores)
    expect(core.paths().sort()).toEqual(['audit.list', 'audit.list', 'wallets.balance', 'wallets.balance'])
})

describe('creates of one workspace go to one core', () => {
  const workspaces = Array.from({ length: 40 }, () => mintId('workspace'))
  const done = () => ({ data: null })
  const createAll = (client: CoreClient) => Promise.all(workspaces.map(workspace => create(client, workspace)))
  const workspacesAt = ({ batches }: { batches: ReceivedBatch[] }) =>
    new Set(batches.flatMap(({ calls }) => calls.map(({ input }) => (input as { workspaceId: string }).workspaceId)))

  test('which all clients choose, and different workspaces choose different cores', async () => {
    const cores = await Promise.all([startCore(done), startCore(done)])
    const [first, second] = cores.map(({ url }) => url)
    const clients = [connect(first!, second!), connect(second!, first!)]
    for (let turn = 0; turn < 3; turn++) for (const client of clients) await createAll(client)
    const [own, others] = cores.map(workspacesAt)
    expect(own!.size).toBeGreaterThan(0)
    expect(others!.size).toBeGreaterThan(0)
    expect([...own!, ...others!].sort()).toEqual(workspaces.toSorted())
  })

  test('and so do all other commands of the workspace', async () => {
    const cores = await Promise.all([startCore(done), startCore(done), startCore(done)])
    const client = connect(...cores.map(({ url }) => url))
    for (const workspaceId of workspaces) {
      await create(client, workspaceId)
      const core = cores.find(({ batches }) => batches.length > 0)!
      const input = { workspaceId } as never
      await client.transfers.batch.mutate(input)
      await client.transfers.reverse.mutate(input)
      await client.holds.create.mutate(input)
      await client.holds.release.mutate(input)
      await client.wallets.create.mutate(input)
      await client.wallets.changeStatus.mutate(input)
      expect(core.batches).toHaveLength(7)
      core.batches.length = 0
    }
  })

  test('a core that does not answer delays only its own workspaces; they move once it is unhealthy', async () => {
    let isHealthy = true
    let received = 0
    const slow = await listen(
      (_request, response) => {
        if (isHealthy) response.end('{}')
      },
      () => received++,
    )
    const core = await startCore(done)
    const client = connect(slow, core.url)
    const answered = new Set<string>()
    const calls = Promise.allSettled(
      workspaces.map(async workspace => {
        await create(client, workspace)
        answered.add(workspace)
      }),
    )
    await until('both cores got a batch', () => received > 0 && core.batches.length > 0)
    const others = workspacesAt(core)
    await until('the workspaces of the other core have answers', () => answered.size === others.size)
    expect(answered).toEqual(others)
    expect(others.size).toBeLessThan(workspaces.length)

    isHealthy = false
    await until('the core is unhealthy', () => client.load().unhealthyCores === 1)
    await calls
    await createAll(client)
    expect(workspacesAt(core)).toEqual(new Set(workspaces))
  })

  const unavailable = {
    message: 'S002',
    code: -32000,
    data: { appError: { kind: 'domain', code: 'S002', isOfCore: true } },
  }

  test.each<[string, () => Promise<string>]>([
    ['cannot be reached', async () => addressWithoutServer],
    ['accepts no connection for batches', () => listen((_request, response) => response.destroy())],
    ['closes the connection', () => listen(healthy, ({ socket }) => socket.destroy())],
    ['fails', () => listen((_request, response) => response.writeHead(500).end())],
    ['rejects batches', () => listen(healthy, ({ reject }) => reject(503))],
    ['is unavailable', async () => (await startCore(() => ({ error: unavailable }))).url],
  ])('if that core %s, the next attempt goes to another one', async (_, startFaulty) => {
    const core = await startCore(done)
    const client = connect(await startFaulty(), core.url)
    await createAll(client).catch(() => {})
    await until('all attempts succeed', () =>
      createAll(client)
        .then(() => true)
        .catch(() => false),
    )
    expect(workspacesAt(core)).toEqual(new Set(workspaces))
  })

  test('if its queue is full, further ones go to another core', async () => {
    const cores = await Promise.all([startCore(), startCore()])
    const client = connect(...cores.map(({ url }) => url))
    const abort = new AbortController()
    const calls: Promise<unknown>[] = []
    const add = (count: number) => {
      for (let at = 0; at < count; at++) calls.push(causeOf(create(client, 'w', abort.signal)))
    }
    add(2 * batchCallLimit)
    await until('two batches have arrived', () => cores.flatMap(core => core.batches).length === 2)
    expect(cores.map(({ batches }) => batches.length).sort()).toEqual([0, 2])
    // In one turn, so that none of them has waited too long.
    add(5_000)
    expect(client.load()).toMatchObject({ waiting: 5_000, inFlight: 2 })
    add(1)
    await until('the other core got a batch', () => cores.every(({ batches }) => batches.length > 0))
    abort.abort()
    await Promise.all(calls)
  })
})

describe('the server rejects the request', () => {
  const streamed = (client: CoreClient) => client.ledger.verify.query({})

  test.each([
    [401, 'core does not know this service token; use one of its SERVICE_TOKENS'],
    [404, 'this is not a core of this version; use the URL of core'],
    [503, 'no core is available there, and the call was not executed'],
  ])('HTTP %i: the call was not executed, and the error says why', async (status, sentence) => {
    const url = await listen((_request, response) => response.writeHead(status).end('no core here'))
    const client = connect(url)
    for (const call of [() => create(client, 'w'), () => balance(client), () => streamed(client)]) {
      const cause = await causeOf(call())
      expect(cause).toBeInstanceOf(CoreRejected)
      expect(cause).toMatchObject({ status, sent: false, message: expect.stringContaining(sentence) })
      expect((cause as Error).message).toContain(`${url} returned HTTP ${status}`)
    }
  })

  test('HTTP 500: a streamed call may have been executed, and no other, because none was sent', async () => {
    const client = connect(await listen((_request, response) => response.writeHead(500).end()))
    expect(await causeOf(streamed(client))).toMatchObject({ name: 'CoreRejected', sent: true })
    expect(await causeOf(create(client, 'w'))).toMatchObject({ name: 'CoreRejected', sent: false })
  })

  test.each([
    [413, false],
    [503, false],
    [500, true],
  ])('a batch is rejected with %i: whether it may have been executed: %s', async (status, sent) => {
    const client = connect(await listen(healthy, ({ reject }) => reject(status)))
    expect(await causeOf(create(client, 'w'))).toMatchObject({ name: 'CoreRejected', status, sent })
  })

  test.each([200, 302, 0, 1e9, Number.NaN])(
    'a rejection with %d is not from core: the call may have been executed',
    async status => {
      const client = connect(await listen(healthy, ({ reject }) => reject(status)))
      expect(await causeOf(create(client, 'w'))).toMatchObject({ name: 'CoreUnreachable', sent: true })
    },
  )

  test.each<[string, Buffer]>([
    ['HTML', Buffer.from('<html>')],
    ['MessagePack that is not an array', packBatch('yes' as never)],
    ['fewer answers than calls', packBatch([])],
    ['null as an answer', packBatch([null] as never)],
    ['an answer without data and error', packBatch([{}] as never)],
  ])('answers that are %s: the call may have been executed', async (_, body) => {
    const client = connect(await listen(healthy, ({ reply }) => reply(body)))
    const cause = await causeOf(create(client, 'w'))
    expect(cause).toBeInstanceOf(CoreUnreachable)
    expect(cause).toMatchObject({ sent: true })
  })
})

describe('streamed answers', () => {
  /** A core that closes the connection of every call after it has received it. */
  async function startHangingUp() {
    const requests: string[] = []
    const url = await listen((request, response) => {
      requests.push(`${request.method} ${request.url?.split('?')[0]}`)
      response.destroy()
    })
    return { url, requests }
  }
  const reopen = (client: CoreClient) => client.ledger.reopen.mutate({ workspaceId: 'w', force: false })

  test('a mutation that was sent and lost is not sent again, and may have been executed', async () => {
    const cores = await Promise.all([startHangingUp(), startHangingUp()])
    const cause = await causeOf(reopen(connect(...cores.map(({ url }) => url))))
    expect(cause).toBeInstanceOf(CoreUnreachable)
    expect(cause).toMatchObject({ sent: true })
    expect(cores.map(({ requests }) => requests)).toEqual([['POST /trpc/ledger.reopen'], []])
  })

  test('a mutation that a core did not receive is sent to the next one', async () => {
    const core = await startHangingUp()
    const client = connect(addressWithoutServer, core.url)
    expect(await causeOf(reopen(client))).toMatchObject({ sent: true })
    expect(core.requests).toEqual(['POST /trpc/ledger.reopen'])
    expect(await causeOf(reopen(connect(addressWithoutServer)))).toMatchObject({ sent: false })
  })

  test('a query that was lost is sent to the next core', async () => {
    const cores = await Promise.all([startHangingUp(), startHangingUp()])
    await causeOf(connect(...cores.map(({ url }) => url)).ledger.verify.query({}))
    expect(cores.map(({ requests }) => requests)).toEqual([['GET /trpc/ledger.verify'], ['GET /trpc/ledger.verify']])
  })

  test.each([
    ['an error', 500],
    ['a line', 200],
  ])('%s without an end is not read to its end', async (_, status) => {
    const piece = Buffer.alloc(2 ** 20, 'x')
    let sent = 0
    const url = await listen((_request, response) => {
      const send = () => {
        while (!response.destroyed && response.write(piece)) sent++
        if (!response.destroyed) response.once('drain', send)
      }
      response.writeHead(status, { 'content-type': 'application/json' })
      send()
    })
    await expect(reopen(connect(url))).rejects.toThrow(status === 500 ? '500' : 'sent more than core does')
    expect(sent).toBeLessThan(100)
  })

  test('calls take turns at the cores', async () => {
    const cores = await Promise.all([startHangingUp(), startHangingUp()])
    const client = connect(...cores.map(({ url }) => url))
    for (let turn = 0; turn < 4; turn++) await causeOf(reopen(client))
    expect(cores.map(({ requests }) => requests.length)).toEqual([2, 2])
  })

  test('an unhealthy core gets no calls', async () => {
    const paths: (string | undefined)[] = []
    const unresponsive = await listen(request => void paths.push(request.url))
    const core = await startHangingUp()
    const client = connect(unresponsive, core.url)
    const batched = balance(client).catch(() => {})
    await until('a core is unhealthy', () => client.load().unhealthyCores === 1)
    for (let turn = 0; turn < 2; turn++) await causeOf(reopen(client))
    expect(core.requests).toContain('POST /trpc/ledger.reopen')
    expect(paths.filter(path => path?.startsWith('/trpc'))).toEqual([])
    await batched
  })
})

test('a core that sends its answers byte by byte keeps no call from another core', async () => {
  const trickling = await listen(healthy, ({ socket }) => {
    socket.write(packFrame(frameKinds.answers, 1, Buffer.alloc(1000)).subarray(0, 9))
    const timer = setInterval(() => socket.write(Buffer.from([0xc0])), 100)
    socket.once('close', () => clearInterval(timer))
  })
  const core = await startCore(() => ({ data: {} }))
  const client = connect(trickling, core.url)
  // More than the batches that may be in flight, at each of the two kinds of reads.
  const reads = Array.from({ length: 3 }, () => [
    client.access.lookup.query({ apiKeys: [] }),
    client.wallets.get.query({ workspaceId: 'w', walletId: 'w', caller: { requestId: 'r' } }),
  ])
  expect(await Promise.all(reads.flat())).toEqual(Array.from({ length: 6 }, () => ({})))
})

describe('a batch whose calls have answers in part', () => {
  test('makes room for another one, and its callers wait for nothing else', async () => {
    const core = await startCore()
    const client = connect(core.url)
    const slow: Promise<unknown>[] = []
    for (let count = 1; count <= 4; count++) {
      const fast = create(client, 'fast')
      slow.push(create(client, 'slow'))
      await until('the batch has arrived', () => core.batches.length === count)
      core.batches.at(-1)!.replyPart({ calls: [0], answers: [{ data: count }] })
      expect(await fast).toBe(count)
    }
    expect(client.load()).toMatchObject({ waiting: 0, inFlight: 4 })
    for (const { reply } of core.batches) reply([{ data: 'late' }])
    expect(await Promise.all(slow)).toEqual(slow.map(() => 'late'))
    await until('all batches are over', () => client.load().inFlight === 0)
  })

  test('makes room for 32 others', async () => {
    const core = await startCore()
    const client = connect(core.url)
    const abort = new AbortController()
    const slow: Promise<unknown>[] = []
    const add = () => {
      const fast = balance(client)
      slow.push(causeOf(balance(client, abort.signal)))
      return fast
    }
    for (let count = 1; count <= 33; count++) {
      const fast = add()
      await until('the batch has arrived', () => core.batches.length === count)
      core.batches.at(-1)!.replyPart({ calls: [0], answers: [{ data: null }] })
      await fast
    }
    const last = add()
    await until('one more has arrived', () => core.batches.length === 34)
    const waiting = causeOf(balance(client, abort.signal))
    await Promise.all([new Promise(setImmediate), new Promise(setImmediate)])
    expect(client.load()).toMatchObject({ waiting: 1, inFlight: 34 })
    core.batches.at(-1)!.replyPart({ calls: [0], answers: [{ data: null }] })
    await last
    abort.abort()
    await Promise.all([...slow, waiting])
  })

  test('fails only the others if its connection is lost, and only these reads go to another core', async () => {
    const cores = await Promise.all([startCore(), startCore()])
    const client = connect(...cores.map(({ url }) => url))
    const reads = ['a', 'b', 'c'].map(name => client.wallets.get.query({ name } as never))
    const received = () => cores.flatMap(({ batches }) => batches)
    await until('the batch has arrived', () => received().length === 1)
    const [first] = received()
    first!.replyPart({ calls: [1], answers: [{ data: 'b' }] })
    expect(await reads[1]).toBe('b')
    first!.socket.destroy()
    await until('the other core has got it', () => received().length === 2)
    const second = received().find(each => each !== first)!
    expect(second.calls.map(({ input }) => input)).toEqual([{ name: 'a' }, { name: 'c' }])
    second.reply([{ data: 'a' }, { data: 'c' }])
    expect(await Promise.all(reads)).toEqual(['a', 'b', 'c'])

    const creates = [create(client, 'w'), causeOf(create(client, 'w'))]
    await until('the batch has arrived', () => received().length === 3)
    const third = received().find(each => each !== first && each !== second)!
    third.replyPart({ calls: [0], answers: [{ data: 'done' }] })
    expect(await creates[0]).toBe('done')
    third.socket.destroy()
    expect(await creates[1]).toMatchObject({ name: 'CoreUnreachable', sent: true })
  })
})

test.each([
  ['with a reason', { retryAfterSeconds: 1, reason: 'TOO_MANY_LISTS' }],
  ['without one', { retryAfterSeconds: 1 }],
])('a core that refuses the calls of one workspace, %s, keeps the others', async (_, details) => {
  const error = {
    message: 'S002',
    code: -32000,
    data: { appError: { kind: 'domain', code: 'S002', details } },
  }
  const cores = await Promise.all(
    [1, 2].map(() => startCore(({ path }) => (path === 'audit.list' ? { error } : { data: null }))),
  )
  const client = connect(...cores.map(({ url }) => url))
  for (let turn = 0; turn < 4; turn++) {
    await list(client).catch(() => {})
    await create(client, 'w')
  }
  const creates = cores.map(({ paths }) => paths().filter(path => path === 'transfers.create').length)
  expect(creates.toSorted()).toEqual([0, 4])
})

describe('connections', () => {
  test('that core wants to end, and does not, are closed', async () => {
    const core = await startCore()
    const client = connect(core.url)
    const sockets: ReceivedBatch['socket'][] = []
    for (let turn = 0; turn < 20; turn++) {
      const answer = create(client, 'w')
      await until('the batch has arrived', () => core.batches.length > turn)
      const { socket, reply } = core.batches[turn]!
      sockets.push(socket)
      socket.write(packFrame(frameKinds.drain))
      reply([{ data: null }])
      await answer
    }
    expect(new Set(sockets).size).toBe(20)
    // The server ends none of them, and goes on writing.
    await until('all are closed', () => {
      for (const socket of sockets) socket.write(packFrame(frameKinds.pong))
      return sockets.every(({ destroyed }) => destroyed)
    })
  })

  test('are kept, one for commands, one for single reads, and one for the rest', async () => {
    const core = await startCore(() => ({ data: null }))
    const client = connect(core.url)
    for (let turn = 0; turn < 3; turn++)
      await Promise.all([create(client, 'a'), create(client, 'b'), balance(client), list(client)])
    expect(new Set(core.batches.map(({ socket }) => socket)).size).toBe(3)
  })

  test('one that was lost without a word is replaced, though its core is healthy; its calls may have been executed', async () => {
    const sockets: unknown[] = []
    const url = await listen(healthy, ({ calls, socket, reply }) => {
      // The first connection of each kind answers neither batches nor pings any more.
      if (sockets.length < 2 && !sockets.includes(socket)) sockets.push(socket.pause())
      else reply(calls.map(() => ({ data: 'done' })))
    })
    const client = connect(url)
    const lost = await Promise.all([causeOf(create(client, 'w')), causeOf(balance(client))])
    expect(lost).toMatchObject([1, 2].map(() => ({ name: 'CoreUnreachable', sent: true })))
    expect(await Promise.all([create(client, 'w'), balance(client)])).toEqual(['done', 'done'])
    await until('all batches are over', () => client.load().inFlight === 0)
    expect(client.load()).toEqual({ waiting: 0, inFlight: 0, unhealthyCores: 0 })
  })

  test('a slow call whose core answers pings is waited for', async () => {
    const core = await startCore()
    const client = connect(core.url)
    const slow = create(client, 'w')
    await until('the batch has arrived', () => core.batches.length === 1)
    let pings = 0
    core.batches[0]!.socket.on('data', () => pings++)
    // A connection without an answer to them would be closed after the second one.
    await until('three pings have arrived', () => pings >= 3)
    core.batches[0]!.reply([{ data: 'late' }])
    expect(await slow).toBe('late')
  })

  test('a core that drains answers what it has, and the next calls go elsewhere without an error', async () => {
    const cores = await Promise.all([startCore(), startCore()])
    const client = connect(...cores.map(({ url }) => url))
    const first = balance(client)
    await until('a batch has arrived', () => cores.some(({ batches }) => batches.length > 0))
    const at = cores.findIndex(({ batches }) => batches.length > 0)
    const { socket, reply } = cores[at]!.batches[0]!
    // It listens no more, and its connections remain.
    NetServer.prototype.close.call(servers[at]!)
    socket.write(packFrame(frameKinds.drain))
    // In turn, the third call goes to the core that drains.
    for (let turn = 0; turn < 3; turn++) {
      const next = balance(client)
      await until('the other core has it', () => cores[1 - at]!.batches.length > turn)
      cores[1 - at]!.batches[turn]!.reply([{ data: 'elsewhere' }])
      expect(await next).toBe('elsewhere')
    }
    const ended = once(socket, 'end')
    reply([{ data: 'here' }])
    expect(await first).toBe('here')
    await ended
  })

  test('none keeps a program running that waits for no call', async () => {
    const core = await startCore(() => ({ data: null }))
    const program = `const { createCoreClient } = await import(process.argv[1])
      const core = createCoreClient({ url: process.argv[2], token: 'x' })
      await core.wallets.balance.query({})`
    const client = new URL('index.ts', import.meta.url).href
    const child = spawn(process.execPath, ['--input-type=module', '-e', program, client, core.url])
    const [code] = await once(child, 'exit')
    expect(code).toBe(0)
    expect(core.paths()).toEqual(['wallets.balance'])
  })
})

test('closing does not wait for the health check of a core that does not answer', async () => {
  const checked = Promise.withResolvers<void>()
  const url = await listen(
    () => checked.resolve(),
    () => {},
  )
  const client = createCoreClient({ url, token: 'x' })
  const call = new AbortController()
  const aborted = causeOf(balance(client, call.signal))
  await checked.promise
  call.abort()
  expect(await aborted).toBeInstanceOf(CallAborted)
  await client.close()
})

test('a core that answers a health check while this process stalls stays in rotation', async () => {
  let checks = 0
  let pending: ReceivedBatch | undefined
  const url = await listen(
    (_request, response) => {
      // Longer than a health check may take. The call is answered after that check.
      if (++checks === 1) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_500)
      else pending!.reply([{ data: 'answer' }])
      response.end('{}')
    },
    received => (pending = received),
  )
  const other = await startCore(() => ({ data: 'answer of another core' }))
  expect(await balance(connect(url, other.url))).toBe('answer')
})

test('an error code that only a newer core knows is passed on', async () => {
  const appError = { kind: 'domain', code: 'X999', details: { limit: 1 } }
  const core = await startCore(() => ({
    error: { message: 'X999 NEW', code: -32600, data: { code: 'CONFLICT', appError } },
  }))
  const error: unknown = await create(connect(core.url), 'w').then(succeeded, error => error)
  expect(error).toMatchObject({ message: 'X999 NEW', data: { appError } })
  expect(domainErrorOf(error)).toBe(null)
})

test('a call whose input cannot be serialized fails alone', async () => {
  const core = await startCore(() => ({ data: 'done' }))
  const client = connect(core.url)
  const calls = ['a', 2n ** 70n, 'b'].map(name => create(client, name))
  expect((await Promise.allSettled(calls)).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
})
