import { expect, test } from 'vitest'
import { Turns } from './turns.ts'

test('a workspace has a few turns at once, a few wait in order, the rest are told; others are not touched', async () => {
  const turns = new Turns(2, 2)
  const gates = Array.from({ length: 4 }, () => Promise.withResolvers<void>())
  const begun: number[] = []
  const results = gates.map((gate, at) =>
    turns.take('greedy', async () => {
      begun.push(at)
      await gate.promise
      return at
    }),
  )
  await expect(turns.take('greedy', async () => 'never')).rejects.toMatchObject({ code: 'S002' })
  await expect(turns.take('other', async () => 'at once')).resolves.toBe('at once')
  expect(begun).toEqual([0, 1])
  gates[1]!.resolve()
  await results[1]
  expect(begun).toEqual([0, 1, 2])
  for (const gate of gates) gate.resolve()
  expect(await Promise.all(results)).toEqual([0, 1, 2, 3])
  await expect(turns.take('greedy', async () => 'again')).resolves.toBe('again')
})

test('work that fails gives its turn back', async () => {
  const turns = new Turns(1, 0)
  const failing = async () => {
    throw new Error('broken')
  }
  for (let count = 0; count < 3; count++) await expect(turns.take('w', failing)).rejects.toThrow('broken')
})
