/** A place in the documentation that can be found. */
export type Entry = {
  kind: 'operation' | 'field' | 'error' | 'event' | 'guide'
  title: string
  /** Where it is: the operation of a field, the page of a section. */
  within: string
  url: string
  text: string
}

/** If two match equally well, the kind that comes first is more probably meant. */
const kinds: Entry['kind'][] = ['operation', 'event', 'error', 'guide', 'field']

/**
 * The entries that have every word of a query that any entry has, the best first. A word matches the beginning of a word, or any
 * part.
 */
export function findEntries(entries: readonly Entry[], query: string): Entry[] {
  const asked = query.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? []
  const words = asked.filter(word => entries.some(entry => pointsOf(entry, [word]) > 0))
  if (words.length === 0) return []
  return entries
    .map(entry => ({ entry, points: pointsOf(entry, words) }))
    .filter(({ points }) => points > 0)
    .toSorted((a, b) => b.points - a.points || kinds.indexOf(a.entry.kind) - kinds.indexOf(b.entry.kind))
    .map(({ entry }) => entry)
}

/** 0 if a word is missing. */
function pointsOf({ title, within, text }: Entry, words: string[]): number {
  let points = title.toLowerCase() === words.join(' ') ? 50 : 0
  for (const word of words) {
    const found = Math.max(10 * matchOf(title, word), 3 * matchOf(within, word), matchOf(text, word))
    if (found === 0) return 0
    points += found
  }
  return points
}

/** 3 for a whole word, 2 for the beginning of one, 1 for a part of one. `sourceWalletId` has the words source, wallet, id. */
function matchOf(text: string, word: string): number {
  const lower = text.toLowerCase()
  if (!lower.includes(word)) return 0
  const parts = [
    ...lower.split(/[^\p{L}\p{N}_]+/u),
    ...text.split(/[^\p{L}\p{N}]+|(?=\p{Lu})/u).map(part => part.toLowerCase()),
  ]
  if (parts.includes(word)) return 3
  return parts.some(part => part.startsWith(word)) ? 2 : 1
}
