import { expect, test } from 'vitest'
import { endpoints } from './endpoints.ts'
import { parseQuery } from './list-query.ts'

test.each(endpoints)('the example of $method $path matches its schemas', endpoint => {
  const { params, query, body, answer, example, path } = endpoint
  expect(params.strict().safeParse(example.params ?? {}).error).toBeUndefined()
  expect(path.match(/(?<=:)\w+/g) ?? []).toEqual(Object.keys(params.shape))
  expect('query' in example).toBe(query !== undefined)
  if (query) parseQuery(example.query!, query)
  expect('body' in example).toBe(body !== undefined)
  expect(body?.safeParse(example.body).error).toBeUndefined()
  expect(answer.safeParse(example.data).error).toBeUndefined()
})

/** The first record of an answer. */
function recordOf(data: Answer): Answer {
  const [record] = data.content ?? data.transfers ?? [data]
  return record!
}
type Answer = Record<string, unknown> & { content?: Answer[]; transfers?: Answer[] }

test('a schema rejects an answer with an additional or a missing field', () => {
  for (const { answer, example } of endpoints) {
    const data = structuredClone(example.data) as Answer
    const record = recordOf(data)
    expect(answer.safeParse(data).success).toBe(true)
    record.additional = 'x'
    expect(answer.safeParse(data).success).toBe(false)
    delete record.additional
    delete record[Object.keys(record)[0]!]
    expect(answer.safeParse(data).success).toBe(false)
  }
})
