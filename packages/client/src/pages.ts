import type { PageMetadata } from './records.ts'

/** One page of a list. */
export type Page<Item> = { content: Item[]; page: PageMetadata }

/**
 * The defaults for reading all pages: the largest pages, oldest first. New items are added at the end then, so none is
 * returned twice or skipped while others are created.
 */
export const allPages = { size: 100, sort: 'createdAt,asc' } as const

/** All items of a list, page by page, until the last page or an empty one. */
export async function* itemsOf<Item>(
  readPage: (page: number) => Promise<Page<Item>>,
): AsyncGenerator<Item, void, void> {
  for (let number = 0; ; number++) {
    const { content, page } = await readPage(number)
    yield* content
    if (content.length === 0 || number + 1 >= page.totalPages) return
  }
}
