import type { TextRow } from '../../../database/snapshot.ts'

/** Reads rows of the catalog as text. SQL names the schema of the tables as `{schema}`. */
export type Reader = { schema: string; rows(sql: string): Promise<TextRow[]> }
