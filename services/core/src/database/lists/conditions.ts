import { type IdKind, idPrefixes, uuidFromId, uuidRangeOfPrefix } from '@workspace-wallet/contract'

/** The values of a statement. `bind` adds one and returns its placeholder. */
export class Values {
  readonly bound: unknown[]

  /** @param bound the values of `$1` and so on in the fragments of a sequence */
  constructor(...bound: unknown[]) {
    this.bound = bound
  }

  bind(value: unknown, type: string): string {
    return `$${this.bound.push(value)}::${type}`
  }
}

/** The condition that a UUID column has a public ID. Nothing has a malformed one. */
export function idEquals(values: Values, column: string, kind: IdKind, id: string): string {
  const uuid = uuidFromId(kind, id)
  return uuid ? `${column} = ${values.bind(uuid, 'uuid')}` : 'false'
}

/** The conditions that the public IDs of a UUID column begin with a prefix; none if all IDs of the kind do. */
export function idBeginsWith(values: Values, column: string, kind: IdKind, prefix: string): string[] {
  if (isPrefixOfAllIds(kind, prefix)) return []
  const range = uuidRangeOfPrefix(kind, prefix)
  if (!range) return ['false']
  return [`${column} between ${values.bind(range.from, 'uuid')} and ${values.bind(range.to, 'uuid')}`]
}

/** Whether every ID of this kind begins with the prefix, such as `trf_`. */
export function isPrefixOfAllIds(kind: IdKind, prefix: string): boolean {
  return `${idPrefixes[kind]}_`.startsWith(prefix)
}

/** Whether few IDs of this kind begin with the prefix: eight characters after `trf_` determine the second of creation. */
export function isPrefixOfFewIds(kind: IdKind, prefix: string): boolean {
  return prefix.length >= idPrefixes[kind].length + 1 + 8
}

/** The condition that an ASCII column in C collation begins with a prefix. */
export function textBeginsWith(values: Values, column: string, prefix: string): string {
  const afterAll = `${prefix}\u{10FFFF}`
  return `${column} >= ${values.bind(prefix, 'text')} and ${column} < ${values.bind(afterAll, 'text')}`
}
