import { z } from 'zod'
import { plainText } from './text.ts'

/** Maximum page size. The public API reduces larger sizes to it, without an error (section 8.1). */
export const maxPageSize = 100
export const defaultPageSize = 20

const direction = z.enum(['asc', 'desc'])

/** A page and its order. The first sort field is primary, later ones break ties. Without `sort`: newest first. */
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

/** The metadata of a page (section 2.2). Totals are exact. */
export const pageMetadata = z.object({
  size: z.int().min(1).describe('The page size in effect.'),
  number: z.int().min(0).describe('The number of the page, zero-based. 0 if the list is empty.'),
  totalElements: z.int().min(0).describe('How many items all pages have together.'),
  totalPages: z.int().min(0).describe('How many pages there are. 0 if the list is empty.'),
})

/** A page (section 2.2). */
export function pageOf<Item extends z.ZodType>(item: Item) {
  return z.object({ content: z.array(item), page: pageMetadata })
}

export type Page<Item> = {
  content: Item[]
  page: { size: number; number: number; totalElements: number; totalPages: number }
}

/** `createdFrom` is inclusive, `createdTo` exclusive. */
export const createdRange = { createdFrom: z.date().optional(), createdTo: z.date().optional() }

/** A filter by an ID or a reference: the whole text, or the beginning of it. */
export const textFilter = plainText(64).min(1, 'EMPTY').optional()
