import { expect, test } from 'vitest'
import { type ConcurrencyLimits, callingToken, WorkspaceConcurrencyLimit } from './workspace-concurrency-limit.ts'

const limits: ConcurrencyLimits = {
  slots: 2,
  reservedSlots: 1,
  waitingPerWorkspace: 2,
  waiting: 3,
  waitMs: 60_000,
  reason: 'TOO_MANY_LISTS',
}

const tooMany = { code: 'S002', details: { retryAfterSeconds: 1, reason: 'TOO_MANY_LISTS' } }

/** A limit with a controlled clock, and calls that the test ends. */
function limited(changes: Partial<ConcurrencyLimits> = {}) {
  let nowMs = 0
  const limit = new WorkspaceConcurrencyLimit({ ...limits, ...changes }, () => nowMs)
  const begun: string[] = []
  const call = (name: string, token?: string) => {
    const gate = Promise.withResolvers<void>()
    const run = () =>
      limit.run(name.charAt(0), () => {
        begun.push(name)
        return gate.promise
      })
    const result = token === undefined ? run() : callingToken.run(token, run)
    const end = async (afterMs = 0) => {
      nowMs += afterMs
      gate.resolve()
      await result
    }
    return { result, end }
  }
  return { limit, begun, call, pass: (ms: number) => (nowMs += ms) }
}

test('the reserved slot is for workspaces with nothing running; waiting calls start in order', async () => {
  const { begun, call } = limited()
  const [first, second, third] = ['a1', 'a2', 'a3'].map(name => call(name))
  expect(begun).toEqual(['a1'])
  const other = call('b1')
  expect(begun).toEqual(['a1', 'b1'])
  await other.end()
  expect(begun).toEqual(['a1', 'b1'])
  await first!.end()
  expect(begun).toEqual(['a1', 'b1', 'a2'])
  await second!.end()
  await third!.end()
  expect(begun).toEqual(['a1', 'b1', 'a2', 'a3'])
})

test('a free slot goes to the workspace that has used the least time, whatever its number of calls', async () => {
  const { begun, call } = limited({ slots: 1, reservedSlots: 0 })
  for (let count = 0; count < 5; count++) await call('b').end(1)
  const long = call('a')
  const [again, short] = [call('a'), call('b')]
  begun.length = 0
  await long.end(1_000)
  expect(begun).toEqual(['b'])
  await short.end(1)
  expect(begun).toEqual(['b', 'a'])
  await again.end()
})

test('used time counts half after ten seconds', async () => {
  const { limit, call, pass } = limited()
  await call('a').end(800)
  expect(limit.usedMs('a')).toBe(800)
  pass(10_000)
  expect(limit.usedMs('a')).toBeCloseTo(400)
  limit.charge('a', 100)
  expect(limit.usedMs('a')).toBeCloseTo(500)
  expect(limit.usedMs('b')).toBe(0)
})

test('too many waiting calls are refused, but one of each workspace may always wait', async () => {
  const { begun, call } = limited({ slots: 1, reservedSlots: 0 })
  const running = call('a1')
  const waiting = [call('a2'), call('a3')]
  await expect(call('a4').result).rejects.toMatchObject(tooMany)
  waiting.push(call('b1'))
  await expect(call('b2').result).rejects.toMatchObject(tooMany)
  waiting.push(call('c1'))
  await running.end()
  for (const each of waiting) each.end()
  await Promise.all(waiting.map(({ result }) => result))
  expect(begun.toSorted()).toEqual(['a1', 'a2', 'a3', 'b1', 'c1'])
})

test('all workspaces that a token names get one share, in which they take turns', async () => {
  const { begun, call } = limited({ slots: 1, reservedSlots: 0, waitingPerWorkspace: 9, waiting: 99 })
  const ofToken = ['a1', 'a2', 'b1', 'c1'].map(name => call(name, 'service:shop'))
  const others = ['b3', 'd1'].map(name => call(name))
  await ofToken[0]!.end(10)
  await others[0]!.end(1)
  await others[1]!.end(1)
  for (const each of [ofToken[2]!, ofToken[3]!, ofToken[1]!]) await each.end(1)
  expect(begun).toEqual(['a1', 'b3', 'd1', 'b1', 'c1', 'a2'])
})

test('a token leaves half of the places to wait to others', async () => {
  const { begun, call } = limited({ slots: 2, reservedSlots: 2, waitingPerWorkspace: 9, waiting: 4 })
  const ofToken = ['a1', 'b1', 'c1', 'd1'].map(name => call(name, 'service:shop'))
  expect(begun).toEqual(['a1', 'b1'])
  await expect(call('e1', 'service:shop').result).rejects.toMatchObject(tooMany)
  const others = ['e2', 'f1'].map(name => call(name))
  await ofToken[0]!.end(1)
  await ofToken[1]!.end(1)
  expect(begun.slice(2)).toEqual(['e2', 'f1'])
  for (const each of [...others, ...ofToken.slice(2)]) await each.end(1)
  expect(begun).toHaveLength(6)
})

test('a call that waits too long is refused and never runs', async () => {
  const { begun, call } = limited({ slots: 1, reservedSlots: 0, waitMs: 1 })
  const running = call('a1')
  await expect(call('b1').result).rejects.toMatchObject(tooMany)
  await running.end()
  await call('b2').end()
  expect(begun).toEqual(['a1', 'b2'])
})

test('failed work releases its slot', async () => {
  const { limit } = limited({ slots: 1, reservedSlots: 0, waitingPerWorkspace: 0 })
  const failing = async () => {
    throw new Error('broken')
  }
  for (let count = 0; count < 3; count++) await expect(limit.run('w', failing)).rejects.toThrow('broken')
})

test('workspaces without recent use are removed', async () => {
  const { limit, pass } = limited()
  for (let count = 0; count < 5_000; count++) {
    await limit.run(`w${count}`, async () => {})
    pass(1)
  }
  expect(limit.load.workspaces).toBeLessThan(2_000)
})
