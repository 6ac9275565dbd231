import { randomUUID } from 'node:crypto'
import { DomainError, type Uuid } from '@workspace-wallet/contract'
import { describe, expect, test } from 'vitest'
import { postingOf, requestOf } from '../../../../../test/setup/ledger-states.ts'
import { until } from '../../../../../test/setup/until.ts'
import { coreItself, type LedgerRequest, type Posting, type RequestResult } from '../decide/requests.ts'
import { Shards } from './shards.ts'

/** One shard or two, whose batches stay in flight until the test finishes them. */
function heldShard(queueLimit = 100, count = 1) {
  const batches: { names: string[]; finish: () => void }[] = []
  const shards = new Shards({
    shards: count,
    queueLimit,
    workspaces: { has: () => true, require: async () => {} },
    postBatch: requests =>
      new Promise(resolve => {
        const results = requests.map((): RequestResult => ({ kind: 'posted', made: [] }))
        const names = requests.map(({ commands }) => (commands[0] as Posting).remark!)
        batches.push({ names, finish: () => resolve(results) })
      }),
  })
  return { shards, batches }
}

const apiKey = 'key:ak_01h455vb4pex5vsknk084sn02q'

function posting(workspaceId: string, remark: string, budgetMs = 10_000): LedgerRequest {
  return requestOf(workspaceId, postingOf({ remark, actor: apiKey }), { deadlineMs: performance.now() + budgetMs })
}

/** Waits until the shard has started every batch that it can start. */
const settled = () => new Promise(setImmediate).then(() => new Promise(setImmediate))

test('postings that arrive while a batch is in flight form the next one, in which waiting workspaces have equal shares', async () => {
  const { shards, batches } = heldShard(1_000)
  const first = shards.post(posting('a', 'first'))
  await settled()
  const many = ['a', 'b', 'c', 'd', 'e', 'f'].flatMap(workspace =>
    Array.from({ length: 60 }, (_, at) => shards.post(posting(workspace, `${workspace} ${at}`))),
  )
  const modest = shards.post(posting('g', 'modest'))
  expect(shards.depth).toEqual({ waiting: 361, posting: 1 })
  batches[0]!.finish()
  await first
  await settled()
  expect(batches[0]!.names).toEqual(['first'])
  expect(batches[1]!.names).toHaveLength(256)
  expect(batches[1]!.names).toContain('modest')
  batches[1]!.finish()
  await modest
  await settled()
  batches[2]!.finish()
  await Promise.all(many)
  await shards.close()
  expect(shards.depth).toEqual({ waiting: 0, posting: 0 })
})

describe('many waiting commands', () => {
  const many = <Made>(length: number, post: (at: number) => Promise<Made>) =>
    Array.from({ length }, (_, at) => post(at))

  test('of a workspace have batches of their own, one at a time, behind which nobody else waits', async () => {
    const { shards, batches } = heldShard(1_000)
    const busy = many(150, at => shards.post(posting('a', `busy ${at}`)))
    await settled()
    expect(batches.map(({ names }) => names.length)).toEqual([100])
    for (const at of [1, 2]) {
      const modest = shards.post(posting('b', 'modest'))
      await settled()
      expect(batches.slice(at).map(({ names }) => names)).toEqual([['modest']])
      batches[at]!.finish()
      await modest
    }
    batches[0]!.finish()
    await settled()
    expect(batches[3]!.names).toHaveLength(50)
    batches[3]!.finish()
    await Promise.all(busy)
    await shards.close()
  })

  test('of several workspaces take turns', async () => {
    const { shards, batches } = heldShard(2_000)
    const posted = [
      ...many(250, () => shards.post(posting('a', 'a'))),
      ...many(100, () => shards.post(posting('b', 'b'))),
    ]
    for (let at = 0; at < 4; at++) {
      await settled()
      batches[at]!.finish()
    }
    await Promise.all(posted)
    expect(batches.map(({ names }) => names[0])).toEqual(['a', 'b', 'a', 'a'])
  })

  test('of a workspace wait until its batch with others is finished', async () => {
    const { shards, batches } = heldShard(1_000)
    const posted = [shards.post(posting('a', '1')), shards.post(posting('b', '2'))]
    await settled()
    posted.push(...many(64, () => shards.post(posting('a', 'many'))))
    await settled()
    expect(batches).toHaveLength(1)
    batches[0]!.finish()
    await settled()
    expect(batches[1]!.names).toHaveLength(64)
    batches[1]!.finish()
    await Promise.all(posted)
  })

  test('of a workspace are posted together with what service tokens post to it', async () => {
    const { shards, batches } = heldShard(1_000)
    const byToken = postingOf({ remark: 'token', actor: 'service:a' })
    const posted = [
      shards.post(requestOf('a', byToken, { deadlineMs: performance.now() + 10_000 })),
      ...many(64, () => shards.post(posting('a', 'key'))),
    ]
    await settled()
    expect(batches.map(({ names }) => [...new Set(names)])).toEqual([['token', 'key']])
    batches[0]!.finish()
    await Promise.all(posted)
  })

  test('of one service token have batches of their own as well, in which its workspaces have equal shares', async () => {
    const { shards, batches } = heldShard(2_000)
    const byToken = (workspaceId: string) =>
      shards.post(
        requestOf(workspaceId, postingOf({ remark: workspaceId, actor: 'service:a' }), {
          deadlineMs: performance.now() + 10_000,
        }),
      )
    const posted = [
      ...many(60, () => byToken('a')),
      ...many(160, at => byToken(`other ${at % 80}`)),
      shards.post(posting('b', 'modest')),
      // Is not kept waiting by batch after batch of the token.
      shards.post(posting('a', 'own')),
    ]
    await settled()
    expect(batches.map(({ names }) => names.length)).toEqual([100, 1])
    expect(batches[0]!.names.filter(name => name === 'a')).toHaveLength(2)
    expect(batches[1]!.names).toEqual(['modest'])
    posted.push(...many(160, at => byToken(`other ${at % 80}`)))
    for (let at = 0; at < batches.length; at++) {
      batches[at]!.finish()
      await settled()
    }
    await Promise.all(posted)
    expect(batches.findIndex(({ names }) => names.includes('own'))).toBe(0)
  })

  test('that have all expired keep no others waiting', async () => {
    const { shards, batches } = heldShard(1_000)
    const late = Promise.allSettled(many(64, () => shards.post(posting('a', 'late', -1))))
    const posted = many(64, () => shards.post(posting('b', 'b')))
    await settled()
    expect((await late).map(({ status }) => status)).not.toContain('fulfilled')
    expect(batches.map(({ names }) => names.length)).toEqual([64])
    batches[0]!.finish()
    await Promise.all(posted)
  })
})

describe('two shards', () => {
  /** Workspaces of different shards. */
  const [first, second] = ['a', 'b']

  test('post few waiting requests in one batch, and later ones when it has its result', async () => {
    const { shards, batches } = heldShard(1_000, 2)
    const posted = [shards.post(posting(first, '1')), shards.post(posting(second, '2'))]
    await settled()
    expect(batches.map(({ names }) => names)).toEqual([['1', '2']])
    posted.push(shards.post(posting(second, '3')), shards.post(posting(first, '4')))
    await settled()
    expect(batches).toHaveLength(1)
    batches[0]!.finish()
    await settled()
    expect(batches[1]!.names.toSorted()).toEqual(['3', '4'])
    batches[1]!.finish()
    await Promise.all(posted)
    await shards.close()
  })

  test('post many waiting requests in a batch each, and never two batches of one shard at a time', async () => {
    const { shards, batches } = heldShard(1_000, 2)
    const posted = Array.from({ length: 64 }, (_, at) =>
      shards.post(posting(at % 2 === 0 ? first : second, `${at % 2}`)),
    )
    await settled()
    const ofOne = (name: string) => Array.from({ length: 32 }, () => name)
    expect(batches.map(({ names }) => names)).toEqual([ofOne('0'), ofOne('1')])
    posted.push(...Array.from({ length: 64 }, () => shards.post(posting(first, 'next'))))
    await settled()
    expect(batches).toHaveLength(2)
    batches[1]!.finish()
    await settled()
    expect(batches).toHaveLength(2)
    batches[0]!.finish()
    await settled()
    expect(batches[2]!.names).toHaveLength(64)
    batches[2]!.finish()
    await Promise.all(posted)
    expect(shards.depth).toEqual({ waiting: 0, posting: 0 })
  })

  test('post expiries apart from the requests of the other shard, because they may be of many holds', async () => {
    const { shards, batches } = heldShard(1_000, 2)
    const expiry = { kind: 'expiry', walletId: randomUUID() as Uuid<'wallet'>, ...coreItself } as const
    const posted = [
      shards.post({ ...posting(first, ''), commands: [expiry] }),
      shards.post(posting(second, 'other')),
      shards.post(posting(second, 'other')),
    ]
    await settled()
    expect(batches.map(({ names }) => names.length)).toEqual([1, 2])
    for (const { finish } of batches) finish()
    await Promise.all(posted)
  })

  test('a batch that is stuck delays the other shard for a short time only', async () => {
    const { shards, batches } = heldShard(1_000, 2)
    const stuck = shards.post(posting(first, 'stuck'))
    await settled()
    const other = shards.post(posting(second, 'other'))
    await until('the other shard posts', () => batches.length === 2)
    expect(batches[1]!.names).toEqual(['other'])
    batches[1]!.finish()
    await other
    batches[0]!.finish()
    await stuck
  })

  test('are closed when everything has its result, and accept nothing more', async () => {
    const { shards, batches } = heldShard(1_000, 2)
    const posted = shards.post(posting(first, '1'))
    let isClosed = false
    const closed = shards.close().then(() => {
      isClosed = true
    })
    await expect(shards.post(posting(second, '2'))).rejects.toMatchObject({ code: 'S002' })
    await settled()
    expect(isClosed).toBe(false)
    batches[0]!.finish()
    await posted
    await closed
    await shards.close()
  })
})

test('one workspace fills at most half of a queue', async () => {
  const { shards, batches } = heldShard(4)
  const taken = [shards.post(posting('a', 'in flight'))]
  await settled()
  taken.push(shards.post(posting('a', '1')), shards.post(posting('a', '2')))
  await expect(shards.post(posting('a', '3'))).rejects.toMatchObject({ code: 'S002' })
  taken.push(shards.post(posting('b', '4')), shards.post(posting('c', '5')))
  await expect(shards.post(posting('c', '6'))).rejects.toMatchObject({ code: 'S002' })
  batches[0]!.finish()
  await settled()
  batches[1]!.finish()
  await expect(Promise.all(taken)).resolves.toHaveLength(5)
})

test('a posting whose deadline passes behind a stuck batch fails with S002', async () => {
  const { shards, batches } = heldShard()
  const stuck = shards.post(posting('a', 'stuck'))
  await settled()
  const patient = shards.post(posting('a', 'patient'))
  await expect(shards.post(posting('a', 'expiring', 1))).rejects.toMatchObject({ code: 'S002' })
  expect(shards.depth).toEqual({ waiting: 1, posting: 1 })
  batches[0]!.finish()
  await stuck
  await settled()
  expect(batches[1]!.names).toEqual(['patient'])
  batches[1]!.finish()
  await patient
})

test('a request with many commands weighs as many', async () => {
  const { shards, batches } = heldShard(1_000)
  const first = shards.post(posting('a', 'first'))
  await settled()
  const heavy = Array.from({ length: 4 }, (_, at) => {
    const commands = Array.from({ length: 40 }, () => postingOf({ remark: `heavy ${at}` }))
    return shards.post({ ...posting('a', ''), commands })
  })
  expect(shards.depth).toEqual({ waiting: 160, posting: 1 })
  batches[0]!.finish()
  await first
  await settled()
  // The third request reaches the limit of 100.
  expect(batches[1]!.names).toEqual(['heavy 0', 'heavy 1', 'heavy 2'])
  expect(shards.depth).toEqual({ waiting: 40, posting: 120 })
  batches[1]!.finish()
  await settled()
  batches[2]!.finish()
  await Promise.all(heavy)
})

test('a workspace with nothing in a full queue may add a request', async () => {
  const { shards, batches } = heldShard(2)
  const taken = [shards.post(posting('a', 'in flight'))]
  await settled()
  for (const workspace of ['a', 'b', 'c', 'd']) taken.push(shards.post(posting(workspace, workspace)))
  await expect(shards.post(posting('c', 'more'))).rejects.toMatchObject({ code: 'S002' })
  await expect(shards.post(posting('e', 'too many'))).rejects.toMatchObject({ code: 'S002' })
  batches[0]!.finish()
  await settled()
  batches[1]!.finish()
  await expect(Promise.all(taken)).resolves.toHaveLength(5)
})

test('what one token posts fills at most half of a queue, in however many workspaces, and leaves API keys their share of each', async () => {
  const { shards, batches } = heldShard(4)
  const by = (actor: string, workspaceId: string, remark: string) =>
    shards.post(requestOf(workspaceId, postingOf({ remark, actor }), { deadlineMs: performance.now() + 10_000 }))
  const taken = [by('service:a', 'a', 'in flight')]
  await settled()
  taken.push(by('service:a', 'a', '1'), by('service:a', 'b', '2'))
  for (const workspace of ['a', 'c'])
    await expect(by('service:a', workspace, 'refused')).rejects.toMatchObject({ code: 'S002' })
  taken.push(by('funding:f', 'a', '3'), by(apiKey, 'a', '4'))
  batches[0]!.finish()
  await settled()
  expect(batches[1]!.names).toEqual(['1', '2', '3', '4'])
  batches[1]!.finish()
  await Promise.all(taken)
  taken.push(by('service:a', 'a', '5'))
  await settled()
  batches[2]!.finish()
  await Promise.all(taken)
})

test('a request for a workspace that does not exist does not wait in the queue', async () => {
  const asked: string[] = []
  const shards = new Shards({
    shards: 1,
    queueLimit: 4,
    workspaces: {
      has: () => false,
      async require(workspaceId) {
        asked.push(workspaceId)
        throw new DomainError('GA2032')
      },
    },
    postBatch: () => Promise.reject(new Error('nothing is posted')),
  })
  const posted = shards.post(posting('a', 'nowhere'))
  expect(shards.depth).toEqual({ waiting: 0, posting: 0 })
  await expect(posted).rejects.toMatchObject({ code: 'GA2032' })
  expect(asked).toEqual(['a'])
})

test('a request whose workspace is being halted waits for it, and no other one does', async () => {
  const halted = Promise.withResolvers<void>()
  const refused: RequestResult = {
    kind: 'refused',
    error: new DomainError('S002', { retryAfterSeconds: 1 }),
    after: halted.promise,
  }
  const shards = new Shards({
    shards: 1,
    queueLimit: 100,
    workspaces: { has: () => true, require: async () => {} },
    postBatch: async requests =>
      requests.map(({ workspaceId }) => (workspaceId === 'broken' ? refused : { kind: 'posted', made: [] })),
  })
  let isAnswered = false
  const broken = shards.post(posting('broken', 'same batch')).finally(() => {
    isAnswered = true
  })
  broken.catch(() => {})
  await shards.post(posting('sound', 'same batch'))
  await shards.post(posting('sound', 'next batch'))
  expect(isAnswered).toBe(false)
  halted.resolve()
  await expect(broken).rejects.toMatchObject({ code: 'S002' })
})
