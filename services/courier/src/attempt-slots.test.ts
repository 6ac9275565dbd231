import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { AttemptSlots } from './attempt-slots.ts'

/** Acquires a slot, and appends the name to `served` once it is granted. */
function acquire(slots: AttemptSlots, workspace: string, served: string[]): void {
  void slots.acquire(workspace, new AbortController().signal).then(() => served.push(workspace))
}

test('a waiter whose signal is aborted leaves the queue', async () => {
  const slots = new AttemptSlots(1)
  const over = new AbortController()
  const granted = [await slots.acquire('a', over.signal)]
  const waiting = [slots.acquire('a', over.signal), slots.acquire('b', over.signal), slots.acquire('a', over.signal)]
  const other = slots.acquire('b', new AbortController().signal)
  expect(slots.waiting).toBe(4)
  over.abort()
  expect(slots.waiting).toBe(1)
  granted.push(...(await Promise.all(waiting)), await slots.acquire('c', over.signal))
  expect(granted).toEqual([true, false, false, false, false])
  slots.release('a')
  expect(await other).toBe(true)
  slots.release('b')
  expect([slots.inUse, slots.waiting]).toEqual([0, 0])
})

test('one workspace gets an eighth of the slots, and others do not wait for it', async () => {
  const slots = new AttemptSlots(16)
  const served: string[] = []
  for (let at = 0; at < 10; at++) acquire(slots, 'slow', served)
  acquire(slots, 'other', served)
  await setImmediate()
  expect(served).toEqual(['slow', 'slow', 'other'])
  expect(slots.inUse).toBe(3)
  slots.release('slow')
  await setImmediate()
  expect(served).toEqual(['slow', 'slow', 'other', 'slow'])
})

test('while a hundred workspaces have as many slots as they may, another one gets some', async () => {
  const slots = new AttemptSlots(256)
  const served: string[] = []
  for (let at = 0; at < 100; at++) for (let count = 0; count < 40; count++) acquire(slots, `slow-${at}`, served)
  await setImmediate()
  // The first ones had most of the slots. When these are released, others get them.
  for (let at = 0; at < 256; at++) {
    slots.release(served[at]!)
    await setImmediate()
  }
  const before = served.length
  for (let count = 0; count < 40; count++) acquire(slots, 'other', served)
  await setImmediate()
  expect(served.slice(before)).toEqual(['other', 'other'])
})

test('when all slots are in use, workspaces take turns', async () => {
  const slots = new AttemptSlots(1)
  const served: string[] = []
  for (const workspace of ['a', 'a', 'a', 'b', 'c', 'b']) acquire(slots, workspace, served)
  for (let count = 1; count <= 6; count++) {
    await setImmediate()
    expect(served).toHaveLength(count)
    expect(slots.inUse).toBe(1)
    slots.release(served.at(-1)!)
  }
  expect(served).toEqual(['a', 'a', 'b', 'c', 'a', 'b'])
  expect(slots.inUse).toBe(0)
})
