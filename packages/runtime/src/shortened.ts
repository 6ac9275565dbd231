/** A sentence of at most `limit` characters that PostgreSQL can store. */
export function shortened(sentence: string, limit: number): string {
  // A character is one or two units. The rest, which may be long, is not looked at.
  const beginning = sentence.slice(0, 2 * (limit + 1))
  const characters = [...beginning.replaceAll('\u0000', '\uFFFD').toWellFormed()]
  return characters.length <= limit ? characters.join('') : `${characters.slice(0, limit - 1).join('')}…`
}
