import type { TextRow } from '../../../database/snapshot.ts'

/** Reads rows of the catalog as text. */
export type Reader = { rows(sql: string): Promise<TextRow[]> }
