import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { z } from 'zod'
import { endpoints } from '../../gateway/src/api/endpoints.ts'
import { isValid, operations, resolve, type Schema } from './document.ts'

/** The fields of bodies that are single values, and query parameters: their schema in the document, and the one of zod. */
type Text = { name: string; documented: Schema; parse: z.ZodType; isBody: boolean }
const texts = endpoints.flatMap(({ operationId, body, query }): Text[] => {
  const operation = operations.find(each => each.operationId === operationId)!
  const { properties = {} } = resolve(operation.body ?? {})
  const shape = body ? (body as unknown as z.ZodObject).shape : {}
  const fields = Object.entries(properties).map(([name, documented]) => {
    return { name: `${operationId}.${name}`, documented, parse: shape[name] as z.ZodType, isBody: true }
  })
  const parameters = operation.parameters.filter(parameter => parameter.in === 'query')
  const queried = parameters.map(({ name, schema }) => {
    const documented = name === query!.repeatable ? schema.items! : schema
    return { name: `${operationId}?${name}`, documented, parse: query!.parameters[name] as z.ZodType, isBody: false }
  })
  return [...fields, ...queried].filter(({ documented }) => ['string', undefined].includes(resolve(documented).type))
})

const longest = [64, 65, 128, 129, 256, 257].flatMap(length => ['x'.repeat(length), '😀'.repeat(length)])
const amounts = ['0', '0.0', '1', '01', '1.', '.5', '1.50', '-1', '+1', '1e3', ' 1', '1\n', '١', '0.05', '100.50', '10']
const digits = [
  '1',
  '9'.repeat(38),
  '9'.repeat(39),
  `${'9'.repeat(37)}.9`,
  `9.${'0'.repeat(38)}`,
  `0.${'0'.repeat(36)}1`,
]
const names = [
  'wallet',
  'wallets',
  'trf_1',
  'TRF_x',
  'hld_',
  'Wal_a',
  'wal_a.b',
  'ak_',
  'wsp',
  'a_b',
  'a:b',
  '-a',
  'a/b',
]
const lines = ['', ' ', '\t', 'a\n', '\u0000', 'a b', '\u00a0', '\u2003', '\u007f', '\u0085', 'é', '!', '~', '\u200b']
const times = ['2026-11-22', '2026-02-30', '2026-11-22T00:00:00Z', '2026-11-22T23:59:60Z', '2026-11-22T00:00:00+02:00']
const sorts = [
  'createdAt,asc',
  'createdAt,up',
  'createdAt',
  'name,desc',
  'amount,asc,asc',
  'ACTIVE',
  'active',
  'USD',
  'XXX',
]
const text = fc.oneof(
  fc.constantFrom(...longest, ...amounts, ...digits, ...names, ...lines, ...times, ...sorts),
  fc.string({ unit: 'binary', maxLength: 300 }).filter(each => each.isWellFormed()),
)

test.each(texts)('$name: the document allows what the service accepts', ({ documented, parse, isBody }) => {
  // IDs of what exists may be any text, and times may lack seconds; the document has the usual form.
  const isNarrower = !isBody || (resolve(documented).maxLength === 64 && !resolve(documented).pattern)
  fc.assert(
    fc.property(text, value => {
      const isAccepted = parse.safeParse(value).success
      const isDocumented = isValid(documented, value)
      expect(isNarrower ? isAccepted || !isDocumented : isAccepted === isDocumented).toBe(true)
    }),
    { numRuns: 300 },
  )
})
