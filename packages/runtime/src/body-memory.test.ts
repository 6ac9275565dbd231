import { expect, test } from 'vitest'
import { BodyMemory } from './body-memory.ts'

const limitBytes = 1000

/** Bodies by name, and the names of those that have given way. */
function open() {
  const memory = new BodyMemory(limitBytes)
  const evicted: string[] = []
  return { memory, evicted, begin: (sender: string, name: string) => memory.begin(sender, () => evicted.push(name)) }
}

test('one sender gets at most half, and its oldest body that is still arriving gives way', () => {
  const { memory, evicted, begin } = open()
  const bodies = ['a1', 'a2', 'a3'].map(name => begin('a', name))
  for (const body of bodies) expect(memory.resize(body, 166)).toBe(true)
  memory.complete(bodies[0]!)
  expect(memory.resize(begin('a', 'a4'), 100)).toBe(true)
  expect(evicted).toEqual(['a2'])
  expect(memory.usedBytes).toBe(2 * 166 + 100)
})

test('a body of the sender that uses most gives way, not one of a sender that uses little', () => {
  const { memory, evicted, begin } = open()
  for (const sender of ['a', 'b'])
    for (let count = 0; count < 4; count++) memory.resize(begin(sender, `${sender}${count}`), 120)
  const modest = begin('c', 'c')
  expect(memory.resize(modest, 40)).toBe(true)
  expect(memory.resize(modest, 80)).toBe(true)
  expect(evicted).toEqual(['a0'])
  expect(memory.usedBytes).toBe(7 * 120 + 80)
})

test('a body that does not fit gives way itself if nothing else can', () => {
  const { memory, evicted, begin } = open()
  const kept = begin('a', 'kept')
  memory.resize(kept, 500)
  memory.complete(kept)
  expect(memory.resize(begin('a', 'a'), 1)).toBe(false)
  expect(memory.resize(begin('b', 'b'), 501)).toBe(false)
  expect(evicted).toEqual(['a', 'b'])
  expect(memory.usedBytes).toBe(500)
})

test('a body that was released or has given way uses nothing, and cannot grow', () => {
  const { memory, evicted, begin } = open()
  const body = begin('a', 'a')
  memory.resize(body, 400)
  memory.release(body)
  memory.release(body)
  expect(memory.resize(body, 400)).toBe(false)
  expect(memory.usedBytes).toBe(0)
  const [older, newer] = [begin('a', 'older'), begin('a', 'newer')]
  memory.resize(older, 300)
  memory.resize(newer, 300)
  memory.release(older)
  expect(memory.usedBytes).toBe(300)
  memory.release(newer)
  expect([evicted, memory.usedBytes]).toEqual([['older'], 0])
})
