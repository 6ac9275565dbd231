import { createHmac, type KeyObject } from 'node:crypto'
import { type JournalType, journalColumns } from '../../database/tables/journal.ts'
import { type RowOf, signedValues } from '../../database/tables/table.ts'

export type { JournalType }

/** A row of the journal, without its MAC. */
export type JournalEntry = RowOf<typeof journalColumns>

/** The journal head of a workspace without journal entries. */
export const emptyJournalHead = Buffer.alloc(0)

/**
 * The MAC of a journal entry: HMAC-SHA256 under the chain key, over the entry and the MAC of the entry before it. The
 * content begins with a word that no other content under this key begins with.
 */
export function journalMac(key: KeyObject, entry: JournalEntry, previous: Buffer): Buffer {
  const content = JSON.stringify(['journal entry', ...signedValues(journalColumns, entry), previous.toString('hex')])
  return createHmac('sha256', key).update(content).digest()
}
