import { expect, test } from 'vitest'
import { endpoints } from './endpoints.ts'
import { parseListQuery } from './list-query.ts'

test.each(endpoints)('the example of $method $path matches its schemas', endpoint => {
  const { params, query, body, answer, example, path } = endpoint
  expect(params.strict().safeParse(example.params ?? {}).error).toBeUndefined()
  expect(path.match(/(?<=:)\w+/g) ?? []).toEqual(Object.keys(params.shape))
  expect('query' in example).toBe(query !== undefined)
  if (query) parseListQuery(example.query!, query)
  expect('body' in example).toBe(body !== undefined)
  expect(body?.safeParse(example.body).error).toBeUndefined()
  expect(answer.safeParse(example.data).error).toBeUndefined()
})

test('a schema rejects an answer with an additional or a missing field', () => {
  for (const { answer, example, query } of endpoints) {
    const data = structuredClone(example.data) as Record<string, unknown> & { content: Record<string, unknown>[] }
    const record = query ? data.content[0]! : data
    expect(answer.safeParse(data).success).toBe(true)
    record.workspaceId = 'wsp_1'
    expect(answer.safeParse(data).success).toBe(false)
    delete record.workspaceId
    delete record[Object.keys(record)[0]!]
    expect(answer.safeParse(data).success).toBe(false)
  }
})
