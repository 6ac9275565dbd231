import { DomainError } from '@workspace-wallet/contract'

/** The first `limit` items of the pages of all places, and whether there are more. Each page is in order, and at most `limit` long. */
export function mergePages<Item>(
  pages: readonly { items: readonly Item[]; next: unknown }[],
  limit: number,
  compare: (a: Item, b: Item) => number,
): { items: Item[]; hasMore: boolean } {
  const items = pages.flatMap(page => page.items).sort(compare)
  return { items: items.slice(0, limit), hasMore: items.length > limit || pages.some(({ next }) => next !== null) }
}

/** The first `limit` items of lists of all places, of each in turn: however many items one place has, those of the others are shown. */
export function takeInTurns<Item>(lists: readonly (readonly Item[])[], limit: number): Item[] {
  const longest = Math.max(...lists.map(({ length }) => length))
  const items: Item[] = []
  for (let at = 0; at < longest && items.length < limit; at++)
    for (const list of lists) if (at < list.length && items.length < limit) items.push(list[at]!)
  return items
}

/** An entry of a list that a place numbers for itself, newest first. */
type Numbered = { id: number; at: Date }

/** Reads a page of the entries of a place before a number. */
type ReadPage<Place, Item> = (
  place: Place,
  before: number | undefined,
) => Promise<{ items: readonly Item[]; next: number | null }>

/** Above the number of any entry. */
const beforeAll = Number.MAX_SAFE_INTEGER

/**
 * A page of the numbered entries of all places, the newest first by the clocks of the places. Within a place, they keep the order of
 * their numbers.
 *
 * @param before `next` of the page before: a number for each place, with points between them
 * @throws DomainError S012 if `before` is of another number of places
 */
export async function mergeNumbered<Place, Item extends Numbered>(
  places: readonly Place[],
  { before, limit }: { before?: string | undefined; limit: number },
  read: ReadPage<Place, Item>,
): Promise<{ items: Item[]; next: string | null }> {
  const positions = before?.split('.').map(Number) ?? places.map(() => beforeAll)
  if (positions.length !== places.length) throw new DomainError('S012', { field: 'before', reason: 'NOT_A_POSITION' })
  const pages = await Promise.all(
    places.map(async (place, index) => {
      const position = positions[index]!
      const { items, next } = await read(place, position === beforeAll ? undefined : position)
      return { items: [...items], next }
    }),
  )
  const items: Item[] = []
  while (items.length < limit) {
    const [newest] = pages
      .map(({ items: [item] }, index) => ({ item, index }))
      .filter(({ item }) => item !== undefined)
      .sort((a, b) => b.item!.at.getTime() - a.item!.at.getTime())
    if (!newest) break
    items.push(pages[newest.index]!.items.shift()!)
    positions[newest.index] = newest.item!.id
  }
  const hasMore = pages.some(({ items: rest, next }) => rest.length > 0 || next !== null)
  return { items, next: hasMore ? positions.join('.') : null }
}

/**
 * Runs a step of work that goes through one place after the other.
 *
 * @param after `next` of the step before. Behind the first place, it begins with the number of the place and a colon.
 * @throws DomainError S012 if `after` names no place
 */
export async function stepThrough<Place, Step extends { next: string | null }>(
  places: readonly Place[],
  after: string | undefined,
  run: (place: Place, after: string | undefined) => Promise<Step>,
): Promise<Step> {
  const [, number = '0', within = after] = /^(\d{1,9}):(.*)$/.exec(after ?? '') ?? []
  const index = Number(number)
  const place = places[index]
  if (!place) throw new DomainError('S012', { field: 'after', reason: 'NOT_A_POSITION' })
  const step = await run(place, within || undefined)
  if (step.next !== null) return { ...step, next: index === 0 ? step.next : `${index}:${step.next}` }
  return { ...step, next: index + 1 < places.length ? `${index + 1}:` : null }
}
