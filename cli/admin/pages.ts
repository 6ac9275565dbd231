import { parseCount, parsePlace } from './values.ts'

/** For lists of commands: how many entries, and where to continue. */
export const pageFlags = {
  limit: { value: 'COUNT', help: 'maximum number of entries', default: '50', parse: parseCount },
  after: {
    value: 'PLACE',
    help: 'where to continue: what the list before said at its end',
    parse: (text: string) => text,
  },
} as const

/** Like `pageFlags`, for lists of numbered entries. */
export const numberedFlags = {
  limit: pageFlags.limit,
  before: { value: 'NUMBER', help: 'only entries before this one, to continue where a list ended', parse: parsePlace },
} as const

const mostInCall = 500

/**
 * Reads pages until there are `limit` entries.
 *
 * @returns the entries, and where a later list continues; null after the last one
 */
export async function readPages<Entry>(
  { limit, after }: { limit: number; after: string | undefined },
  read: (page: { limit: number; after: string | undefined }) => Promise<{ entries: Entry[]; next: string | null }>,
): Promise<{ entries: Entry[]; next: string | null }> {
  const entries: Entry[] = []
  let next: string | null = after ?? null
  do {
    const page = await read({ limit: Math.min(limit - entries.length, mostInCall), after: next ?? undefined })
    entries.push(...page.entries)
    next = page.next
  } while (next !== null && entries.length < limit)
  return { entries, next }
}

/** The last line of a list that does not end there. */
export function moreSentence(next: string | null): string {
  return next === null ? '' : `\n\nThere are more. To list them, add --after ${next}.`
}

/** Like `moreSentence`, for lists of numbered entries. */
export function olderSentence(next: string | null): string {
  return next === null ? '' : `\n\nThere are older ones. To list them, add --before ${next}.`
}
