/** The schema that has the tables of the service, if a database URL names no other one. */
export const defaultSchema = 'public'

/** The schema that a database URL names in its parameter `schema`. */
export function schemaOf(url: string): string {
  return new URL(url).searchParams.get('schema') ?? defaultSchema
}

/** Whether a database URL names a schema that needs no quotes in SQL, and that PostgreSQL does not reserve. */
export function hasUsableSchema(url: string): boolean {
  return URL.canParse(url) && /^(?!pg_)[a-z][a-z0-9_]{0,62}$/.test(schemaOf(url))
}

/** The URL that other programs and the driver know: without the parameter `schema`. */
export function withoutSchema(url: string): string {
  const target = new URL(url)
  target.searchParams.delete('schema')
  return target.href
}

/**
 * SQL with the name of the schema in place of `{schema}`. Statements name it that must not depend on the search path: those of
 * functions and of verifications.
 */
export function inSchema(sql: string, schema: string): string {
  return sql.replaceAll('{schema}', schema)
}
