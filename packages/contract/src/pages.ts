import { z } from 'zod'
import { plainText } from './text.ts'

/** The largest page size; the public API caps at it without an error (section 8.1). */
export const maxPageSize = 100
export const defaultPageSize = 20

const direction = z.enum(['asc', 'desc'])

/** Which page, and in what order: the first field is primary, later ones break ties; empty is newest first. */
export function pageRequest<const Fields extends readonly [string, ...string[]]>(sortable: Fields) {
  return z.object({
    page: z.int().min(0).default(0),
    size: z.int().min(1).max(maxPageSize).default(defaultPageSize),
    sort: z
      .array(z.object({ field: z.enum(sortable), direction }))
      .max(sortable.length)
      .default([]),
  })
}

/** A page as section 2.2 shapes it. Totals are exact. */
export function pageOf<Item extends z.ZodType>(item: Item) {
  return z.object({
    content: z.array(item),
    page: z.object({
      size: z.int(),
      number: z.int(),
      totalElements: z.int(),
      totalPages: z.int(),
    }),
  })
}

export type Page<Item> = {
  content: Item[]
  page: { size: number; number: number; totalElements: number; totalPages: number }
}

/** From inclusive, to exclusive. */
export const createdRange = { createdFrom: z.date().optional(), createdTo: z.date().optional() }

/** Part of an id or name to filter by; plain characters, matched from the beginning. */
export const prefixFilter = plainText(64).min(1, 'EMPTY').optional()
