import type { Id } from '@workspace-wallet/contract'

/** Where a page of transfers begins: after the last transfer of the page before it, in the order of the search. */
export type Cursor =
  | { by: 'position'; value: number }
  | { by: 'sequence'; value: number }
  /** A time in milliseconds, and a public ID that orders transfers of the same time. */
  | { by: 'time'; value: number; id: Id<'transfer'> }

const letters = { position: 'p', sequence: 's', time: 't' } as const

export function cursorText(cursor: Cursor): string {
  const text = `${letters[cursor.by]}${cursor.value}`
  return cursor.by === 'time' ? `${text}.${cursor.id}` : text
}

/** Null if the text is not a cursor of this kind. */
export function parseCursor<By extends Cursor['by']>(by: By, text: string): Extract<Cursor, { by: By }> | null {
  // PostgreSQL can store each time of 14 digits.
  const [, letter, digits, id] = /^([ps](?=\d{1,15}$)|t(?=\d{1,14}\.))(\d+)(?:\.(trf_[0-9a-z]{26}))?$/.exec(text) ?? []
  if (letter !== letters[by] || (by === 'time') !== (id !== undefined)) return null
  return { by, value: Number(digits), ...(id && { id }) } as unknown as Extract<Cursor, { by: By }>
}
