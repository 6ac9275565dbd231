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
