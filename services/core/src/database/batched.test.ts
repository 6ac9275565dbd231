import { expect, test } from 'vitest'
import { batched } from './batched.ts'
import { callingToken } from './workspace-concurrency-limit.ts'

test('rows that several callers read at once count for none of their tokens', async () => {
  const seen: Record<string, string | undefined> = {}
  const read = batched({
    readMany: async (_: object, keys: readonly string[]) => [...keys],
    nameOf: { key: (key: string) => key, row: (row: string) => row },
    resultOf(_, row) {
      seen[row] = callingToken.getStore()
      return row
    },
  })
  const source = {}
  const results = await Promise.all([callingToken.run('service:s', () => read(source, 'a')), read(source, 'b')])
  expect(results).toEqual(['a', 'b'])
  expect(seen).toEqual({ a: undefined, b: undefined })
})

test('serial reads: one statement at a time, and those who call meanwhile share the next one', async () => {
  const statements: { keys: readonly string[]; end: () => void }[] = []
  const read = batched({
    readMany: (_: object, keys: readonly string[]) =>
      new Promise<string[]>((resolve, reject) => {
        const end = () => (keys.includes('failing') ? reject(new Error('failed')) : resolve([...keys]))
        statements.push({ keys, end })
      }),
    nameOf: { key: (key: string) => key, row: (row: string) => row },
    resultOf: (_, row) => row,
    isSerial: true,
  })
  const source = {}
  const turn = () => new Promise(resolve => setImmediate(resolve))
  const first = read(source, 'failing').catch((error: Error) => error.message)
  await turn()
  const later: Promise<string | null>[] = []
  // More than fit into one statement.
  for (let count = 0; count < 300; count++) {
    later.push(read(source, `key ${count % 3}`))
    if (count % 30 === 0) await turn()
  }
  for (let ended = 0; ended < 3; ended++) {
    expect(statements).toHaveLength(ended + 1)
    statements[ended]!.end()
    await turn()
  }
  expect(statements.map(({ keys }) => keys.length)).toEqual([1, 3, 3])
  expect(await first).toBe('failed')
  expect(await Promise.all(later)).toEqual(later.map((_, count) => `key ${count % 3}`))
})
