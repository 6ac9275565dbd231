/**
 * How every list is read (sections 2.2 and 8.1): one statement gives a page and its exact totals, from one snapshot.
 *
 * The rows of one owner count 1…n without gaps. In order of time a page is therefore a range of numbers, and the
 * total is the owner's counter: the first page and the millionth cost the same. A range of creation times is a range
 * of numbers too, found by bisection. Only other filters have to count what they match; only with them, or in an order
 * that does not begin with time, are rows skipped to reach a page.
 */
export type List = Search &
  PageRequest & {
    /** The UUID of the workspace whose list it is. */
    workspace: string
    /** What a page shows of each row, and the FROM item that has it: the table of the sequence and what it needs. */
    shows: { columns: string; from: string }
    filter: CreatedFilter & Record<string, unknown>
    sort: SortField[]
  }

/** Which rows a list has, and how to find them. */
export type Search = {
  sequence: Sequence
  /** What a filter asks for, the time of creation aside. */
  conditions: string[]
  /** Conditions that divide the rows so that each part has an index of its own. */
  parts?: string[] | undefined
  /**
   * Where to look for what matches, when an index leads there from the filter, but not in the order of the list: all
   * matches are found first and then sorted. Otherwise rows are read in the order of the list and matched on the way.
   */
  findIn?: Source | undefined
}

/** Fragments of SQL, in which `$1` and so on are what `Values` has bound. */
export type Source = {
  table: string
  where: string
  /** The number of a row. */
  number: string
  createdAt: string
  /** The column behind each field to sort by; null when all rows have the same. */
  sortable: Record<string, string | null>
}

/** Rows of one owner that count 1…n in the order of their creation; their times never run back along the numbers. */
export type Sequence = Source & {
  /** Selects the owner's counter, as `total`; no row when there is no such owner. */
  owner: string
  /** Another column in the order of the numbers: the one that ends the indexes for other orders. */
  tieBreak?: string
}

/** A page, and its order: the first field is primary, later ones break ties; none is newest first. */
export type PageRequest = { page: number; size: number }
export type SortField = { field: string; direction: Direction }
export type Direction = 'asc' | 'desc'
export type CreatedFilter = { createdFrom?: Date | undefined; createdTo?: Date | undefined }

/** What a caller may ask of a list. */
export type ListRequest<Filter> = PageRequest & { filter: Filter; sort: SortField[] }

export function sortsBy(sort: SortField[], field: string): boolean {
  return sort.some(each => each.field === field)
}
