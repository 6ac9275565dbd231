/** Reads rows one by one and shows the next one before it is taken, to read several sorted streams side by side. */
export class Lookahead<Row> {
  readonly #batches: AsyncIterator<Row[]>
  #rows: Row[] = []
  #at = 0

  constructor(batches: AsyncIterable<Row[]>) {
    this.#batches = batches[Symbol.asyncIterator]()
  }

  async peek(): Promise<Row | undefined> {
    while (this.#at === this.#rows.length) {
      const { done, value } = await this.#batches.next()
      if (done) return undefined
      this.#rows = value
      this.#at = 0
    }
    return this.#rows[this.#at]
  }

  take(): void {
    this.#at++
  }
}

/** Sorts as PostgreSQL sorts the two columns: a missing ID is last. */
export function sortKey(workspaceId: string | null, id: string | null): string {
  return `${workspaceId ?? '~'}/${id ?? '~'}`
}
