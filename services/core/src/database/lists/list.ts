/**
 * A request for a page of a list (sections 2.2 and 8.1). One statement reads the page and its exact totals.
 *
 * The rows of one owner are numbered 1…n. In order of creation a page is therefore a range of numbers, and the
 * total is the owner's counter: the first page and the millionth cost the same. A range of creation times is also a range
 * of numbers, found by bisection. Other filters have to count their matches, and they, like orders that do not begin with
 * time, skip rows to reach a page.
 */
export type List = Search &
  PageRequest & {
    /** The UUID of the workspace whose list it is. */
    workspace: string
    /** The columns of a page, and their FROM item: the table of the sequence, with joins. */
    shows: { columns: string; from: string }
    filter: CreatedFilter & Record<string, unknown>
    sort: SortField[]
  }

/** The rows of a list, and how to find them. */
export type Search = {
  sequence: Sequence
  /** The conditions of the filter, except the time of creation. */
  conditions: string[]
  /** Conditions that divide the rows into parts, each of which has an index. */
  parts?: string[] | undefined
  /**
   * The source with an index for the filter that does not have the order of the list: all matches are read and then
   * sorted. Without it, rows are read in the order of the list and filtered.
   */
  findIn?: Source | undefined
}

/** Fragments of SQL with the placeholders of `Values`. */
export type Source = {
  table: string
  where: string
  /** The number of a row. */
  number: string
  createdAt: string
  /** The column of each sortable field; null if all rows have the same value. */
  sortable: Record<string, string | null>
}

/** The rows of one owner, numbered 1…n in the order of creation. Their times never decrease. */
export type Sequence = Source & {
  /** Selects the owner's counter as `total`; no row if there is no such owner. */
  owner: string
  /** The number of the n-th row, if the numbers have gaps because rows of other lists share them. */
  numberOf?: (nth: string) => string
}

/** A page, counted from 0. */
export type PageRequest = { page: number; size: number }
/** The first field of a sort is primary, later ones break ties. Without any, the order is newest first. */
export type SortField = { field: string; direction: Direction }
export type Direction = 'asc' | 'desc'
export type CreatedFilter = { createdFrom?: Date | undefined; createdTo?: Date | undefined }

/** What a caller requests. */
export type ListRequest<Filter> = PageRequest & { filter: Filter; sort: SortField[] }

export function sortsBy(sort: SortField[], field: string): boolean {
  return sort.some(each => each.field === field)
}
