import fc from 'fast-check'
import { expect, test } from 'vitest'
import { findRepeatedKey } from './repeated-key.ts'

const find = (text: string) => findRepeatedKey(text, JSON.parse(text))

test.each<[string, (string | number)[]]>([
  ['{"a":1,"a":2}', ['a']],
  ['{"a":1, "b":{"c":1,"c" : 2}}', ['b', 'c']],
  ['{"a":[{"b":1},{"b":1,"c":{"x":1,"\\u0078":2}}]}', ['a', 1, 'c', 'x']],
  ['{"a":[[0,1],[{},{"b":[1,2],"b":3}]]}', ['a', 1, 1, 'b']],
  ['{"":1,"":2}', ['']],
  ['{"__proto__":1,"__proto__":2}', ['__proto__']],
  ['{"a\\"":":","a\\"":1}', ['a"']],
])('finds the repeated key of %s', (text, path) => {
  expect(find(text)).toEqual(path)
})

test.each(['{"a":"b","c":":"}', '{"a":{"a":1},"b":[{"a":1},{"a":2}]}', '[]', '"a:"', '{"a":"{\\"b\\":1,\\"b\\":2}"}'])(
  'finds none in %s',
  text => {
    expect(find(text)).toBeNull()
  },
)

test('finds none in any serialized value, and any key that is repeated', () => {
  fc.assert(
    fc.property(fc.jsonValue(), value => {
      expect(find(JSON.stringify(value))).toBeNull()
    }),
  )
  fc.assert(
    fc.property(fc.string(), fc.jsonValue(), fc.jsonValue(), (key, first, second) => {
      const pair = (value: unknown) => `${JSON.stringify(key)}:${JSON.stringify(value)}`
      expect(find(`[{${pair(first)}},{${pair(first)},${pair(second)}}]`)).toEqual([1, key])
    }),
  )
})
