/** The order of a list: a field and a direction, such as `createdAt,asc`. */
export type Sort<Field extends string> = `${Field},${'asc' | 'desc'}`

/** A parameter that can be repeated. */
export type OneOrMore<Value> = Value | readonly Value[]

/** Parameters without a value are not sent, and those with several values are repeated. */
export type Query = Readonly<Record<string, OneOrMore<string | number | boolean> | undefined>>

/** The query string of a query, with its question mark. Empty without parameters. */
export function queryString(query: Query): string {
  const parameters = new URLSearchParams()
  for (const [name, values] of Object.entries(query))
    for (const value of [values].flat()) if (value !== undefined) parameters.append(name, String(value))
  return parameters.size > 0 ? `?${parameters}` : ''
}

/**
 * One segment of a path, percent-encoded.
 *
 * @throws TypeError if no path can have it: fetch would resolve dots as folders
 */
export function segment(id: string | number): string {
  const text = String(id)
  if (text === '' || text === '.' || text === '..') throw new TypeError(`"${text}" is not an ID`)
  return encodeURIComponent(text)
}
