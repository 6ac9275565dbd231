import { type IdKind, idPrefixes, uuidRangeOfPrefix } from '@workspace-wallet/contract'

/** The values of a statement: `bind` keeps one and answers with its place in the text. */
export class Values {
  readonly bound: unknown[]

  /** @param bound what the fragments of a sequence call `$1` and so on */
  constructor(...bound: unknown[]) {
    this.bound = bound
  }

  bind(value: unknown, type: string): string {
    return `$${this.bound.push(value)}::${type}`
  }
}

/** The conditions under which the public ids of a UUID column begin with a text; none when all ids of the kind do. */
export function idBeginsWith(values: Values, column: string, kind: IdKind, prefix: string): string[] {
  if (isPrefixOfAllIds(kind, prefix)) return []
  const range = uuidRangeOfPrefix(kind, prefix)
  if (!range) return ['false']
  return [`${column} between ${values.bind(range.from, 'uuid')} and ${values.bind(range.to, 'uuid')}`]
}

/** Whether every id of this kind begins with a text, such as `trf_`. */
export function isPrefixOfAllIds(kind: IdKind, prefix: string): boolean {
  return `${idPrefixes[kind]}_`.startsWith(prefix)
}

/**
 * Whether few ids of this kind begin with a text: those of about a second, because ids begin with the time at which
 * they were made. The first eight characters after the prefix tell seconds.
 */
export function isPrefixOfFewIds(kind: IdKind, prefix: string): boolean {
  return prefix.length >= idPrefixes[kind].length + 1 + 8
}

/** The condition that an ASCII column in C collation begins with a text, any text. */
export function textBeginsWith(values: Values, column: string, prefix: string): string {
  const afterAll = `${prefix}\u{10FFFF}`
  return `${column} >= ${values.bind(prefix, 'text')} and ${column} < ${values.bind(afterAll, 'text')}`
}
