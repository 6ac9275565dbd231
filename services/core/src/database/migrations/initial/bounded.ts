/**
 * A check that these columns have at most as many bytes. The bounds are above everything that core writes. They keep whoever has the
 * service's role from storing a value that fills the memory of a program that reads it. Null passes.
 */
export const bounded = (bytes: number, ...columns: string[]) =>
  `check (greatest(${columns.map(column => `octet_length(${column})`).join(', ')}) <= ${bytes})`
