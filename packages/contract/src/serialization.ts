import { SuperJSON, type SuperJSONResult } from 'superjson'
import { Decimal, parseDecimal } from './money.ts'

const superJson = new SuperJSON()

superJson.registerCustom<Decimal, string>(
  {
    isApplicable: (value): value is Decimal => Decimal.isDecimal(value),
    serialize: value => value.toFixed(),
    deserialize: parseDecimal,
  },
  'Decimal',
)

/**
 * The serialization of `/trpc`: JSON that preserves Date, Decimal and undefined. The other types of superjson are rejected:
 * a few bytes of them can take minutes or gigabytes.
 */
export const serialization = {
  serialize: (value: unknown): SuperJSONResult => superJson.serialize(value),
  /** @throws Error */
  deserialize<Value>(value: SuperJSONResult | null): Value {
    if (value === null) throw new Error('not superjson')
    const { json, meta } = value
    if (!meta?.values) return json as Value
    checkTypes(meta.values)
    // The JSON contains equal objects in full.
    const { referentialEqualities, ...plain } = meta
    return superJson.deserialize<Value>({ json, meta: plain }, { inPlace: true })
  },
}

/** Deeper than any value with a type. Paths of superjson take quadratic time. */
const maxPathLength = 32
const types = new Set(['["Date"]', '["undefined"]', '[["custom","Decimal"]]'])

/** Checks the types that superjson names for values, by their paths: `[type]`, `[type, { path: … }]` or `{ path: … }`. */
function checkTypes(tree: unknown, length = 0): void {
  if (typeof tree !== 'object' || tree === null || length > maxPathLength) throw new Error('not superjson')
  const [type, children = {}] = Array.isArray(tree) ? tree : [undefined, tree]
  if (typeof children !== 'object' || children === null) throw new Error('not superjson')
  if (type !== undefined && !types.has(JSON.stringify([type]))) throw new Error('superjson of a type that is not used')
  for (const [path, child] of Object.entries(children)) checkTypes(child, length + path.split('.').length)
}
