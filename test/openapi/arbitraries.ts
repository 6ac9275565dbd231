import fc from 'fast-check'
import { isValid, type Operation, resolve, type Schema } from './document.ts'
import type { Request } from './send.ts'

/** Values that exist in the system under test, by the name of the field or parameter that can have them. */
export type Pools = Record<string, readonly unknown[]>

/** Requests of an operation that are valid by its schemas. */
export function validRequest(operation: Operation, pools: Pools): fc.Arbitrary<Request> {
  const { method, path, parameters, body } = operation
  const ofKind = (kind: string) => parameters.filter(parameter => parameter.in === kind)
  const params = ofKind('path').map(({ name, schema }) => [name, valuesOf(schema, pools, name)] as const)
  const query = ofKind('query').map(({ name, schema }) =>
    fc
      .option(valuesOf(schema, pools, name), { nil: [], freq: 2 })
      .map(value => [value].flat().map((each): [string, string] => [name, String(each)])),
  )
  return fc.record({
    method: fc.constant(method),
    path: fc.constant(path),
    params: fc.record(Object.fromEntries(params)),
    query: fc.tuple(...query).map((entries: [string, string][][]) => entries.flat()),
    ...(body && { body: valuesOf(body, pools, 'body') }),
  })
}

/** Requests of an operation with a fault in one parameter or field, or with an unknown one. */
export function mutatedRequest(operation: Operation, pools: Pools): fc.Arbitrary<Request> {
  const junk = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 300 }).filter(text => text.isWellFormed()),
    fc.constantFrom(
      '',
      ' ',
      '-1',
      '1e3',
      '0x10',
      '9007199254740992',
      'NaN',
      '\u0000',
      '../..',
      "'",
      '٣',
      'null',
      'a,b',
    ),
    fc.constantFrom('x'.repeat(65), '😀'.repeat(257), '9'.repeat(400)),
  )
  const jsonJunk = fc.oneof(junk, fc.jsonValue(), fc.constantFrom(null, -1, 0, 1.5, true, [], {}))
  return fc
    .tuple(
      validRequest(operation, pools),
      fc.nat(),
      fc.constantFrom('replace', 'remove', 'add', 'repeat'),
      junk,
      jsonJunk,
    )
    .map(([request, place, change, text, value]) => {
      const names = Object.keys(request.params)
      if (request.body !== undefined) return { ...request, body: mutated(request.body, place, change, value) }
      if (names.length > 0 && place % 2 === 0) return { ...request, params: { [names[0]!]: text } }
      const at = place % (request.query.length + 1)
      const [name] = request.query[at] ?? [text]
      return { ...request, query: [...request.query.toSpliced(at, change === 'repeat' ? 0 : 1), [name, text]] }
    })
}

/** A copy of a body with one change, at any depth. */
function mutated(body: unknown, place: number, change: string, value: unknown): unknown {
  if (Array.isArray(body)) {
    const at = place % (body.length + 1)
    return at === body.length ? [...body, value] : body.with(at, mutated(body[at], place, change, value))
  }
  if (typeof body !== 'object' || body === null) return value
  const names = Object.keys(body)
  const name = change === 'add' || names.length === 0 ? 'unknown' : names[place % names.length]!
  const { [name]: old, ...rest } = body as Record<string, unknown>
  if (change === 'remove') return rest
  return { ...rest, [name]: typeof old === 'object' ? mutated(old, place, change, value) : value }
}

/** Values of a schema. Some are from the pool of `name`, as far as they are valid. */
function valuesOf(schema: Schema, pools: Pools, name: string): fc.Arbitrary<unknown> {
  const resolved = resolve(schema)
  const pool = (pools[name] ?? []).filter(value => isValid(schema, value))
  const any = generated(resolved, pools, name).filter(value => isValid(schema, value))
  return pool.length > 0
    ? fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...pool) }, { weight: 1, arbitrary: any })
    : any
}

function generated(schema: Schema, pools: Pools, name: string): fc.Arbitrary<unknown> {
  if ('const' in schema) return fc.constant(schema.const)
  if (schema.enum) return fc.constantFrom(...schema.enum)
  if (schema.anyOf?.some(({ format }) => format)) return fc.oneof(dateTime, date)
  if (schema.anyOf) return fc.oneof(...schema.anyOf.map(each => valuesOf(each, pools, name)))
  switch (schema.type) {
    case 'integer': {
      const { minimum, maximum = Number.MAX_SAFE_INTEGER } = schema
      return fc.oneof(fc.constantFrom(minimum!, maximum), fc.integer({ min: minimum!, max: maximum }))
    }
    case 'string':
      return textOf(schema)
    case 'array':
      return fc.array(valuesOf(schema.items!, pools, name), {
        minLength: schema.minItems ?? 0,
        maxLength: schema.maxItems ?? 4,
        ...(schema.minItems && { size: 'large' }),
      })
    case 'object': {
      const fields = Object.entries(schema.properties!).map(([field, each]): [string, fc.Arbitrary<unknown>] => [
        field,
        valuesOf(each, pools, field),
      ])
      const { required = [] } = schema
      return fc.record<Record<string, unknown>>(Object.fromEntries(fields), { requiredKeys: required })
    }
    default:
      throw new Error(`no generator for ${JSON.stringify(schema)}`)
  }
}

/** Short texts, and some of the maximum length. */
function textOf({ pattern, minLength = 0, maxLength = 64 }: Schema): fc.Arbitrary<string> {
  const any = fc.string({ unit: 'binary', minLength, maxLength })
  const longest = fc.string({ unit: 'grapheme-ascii', minLength: maxLength, maxLength })
  const emojis = fc.constant('😀'.repeat(maxLength))
  const matching = pattern ? [fc.stringMatching(new RegExp(pattern, 'u'), { maxLength }), digits(maxLength)] : []
  return fc.oneof(...matching, any, longest, emojis).filter(text => text.isWellFormed())
}

/** The longest numbers, which are also IDs. */
const digits = (length: number) =>
  fc.tuple(fc.integer({ min: 1, max: 9 }), fc.nat(9)).map(([first, rest]) => `${first}`.padEnd(length, `${rest}`))

const time = fc.date({ min: new Date('0001-01-02'), max: new Date('9998-12-30'), noInvalidDate: true })
const date = time.map(value => value.toISOString().slice(0, 10))
const dateTime = fc
  .tuple(time, fc.constantFrom('', '.5', '.123', '.123456789'), fc.constantFrom('Z', '+00:00', '-11:30', '+14:00'))
  .map(([value, fraction, zone]) => `${value.toISOString().slice(0, 19)}${fraction}${zone}`)
