import { setImmediate as nextIteration } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Rotation } from './rotation.ts'

const [a, b] = [{ name: 'a' }, { name: 'b' }]

/** Blocks the event loop, as a body does that takes this long to decode. */
function block(ms: number): void {
  const untilMs = performance.now() + ms
  while (performance.now() < untilMs);
}

test('the connections of a sender take turns, one body in an iteration', async () => {
  const rotation = new Rotation()
  const decoded: string[] = []
  const decode = async (name: string, connection: object) => {
    await rotation.next('sender', connection)
    decoded.push(name)
  }
  const all = [decode('a1', a), decode('a2', a), decode('a3', a), decode('b1', b), decode('b2', b)]
  expect(rotation.waitingOf('sender')).toBe(4)
  await nextIteration()
  expect(decoded.length).toBeLessThan(4)
  await Promise.all(all)
  expect(decoded).toEqual(['a1', 'a2', 'b1', 'a3', 'b2'])
  expect(rotation.waitingOf('sender')).toBe(0)
})

test('after a body that takes long, those of its sender wait for as long again, and no other one does', async () => {
  const rotation = new Rotation()
  const turns: { sender: string; startedAtMs: number; endedAtMs: number }[] = []
  const decode = async (sender: string, ms: number) => {
    await rotation.next(sender, a)
    const startedAtMs = performance.now()
    block(ms)
    turns.push({ sender, startedAtMs, endedAtMs: performance.now() })
  }
  // One after the other, and also the first one after another that nobody waited for.
  await decode('slow', 20)
  await Promise.all([decode('slow', 20), decode('brief', 0), decode('slow', 20)])
  const slow = turns.filter(({ sender }) => sender === 'slow')
  expect(slow).toHaveLength(3)
  // Timers may fire up to a millisecond early.
  for (const [at, { startedAtMs }] of slow.slice(1).entries())
    expect(startedAtMs - slow[at]!.endedAtMs).toBeGreaterThanOrEqual(19)
  expect(turns.map(({ sender }) => sender)).toEqual(['slow', 'brief', 'slow', 'slow'])
})
