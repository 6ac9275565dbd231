/** A condition on text that an index in the order of bytes can serve. The prefix is taken literally. */
export function beginsWith(prefix: string): { $like: string } {
  return { $like: `${prefix.replaceAll(/[\\%_]/g, '\\$&')}%` }
}

/** A range that includes both ends, of which each may be missing. */
export function between<Value>(from: Value | undefined, to: Value | undefined): { $gte?: Value; $lte?: Value } {
  return { ...(from !== undefined && { $gte: from }), ...(to !== undefined && { $lte: to }) }
}
