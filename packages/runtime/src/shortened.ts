/** A sentence of at most `limit` characters that PostgreSQL can store. */
export function shortened(sentence: string, limit: number): string {
  const characters = [...sentence.replaceAll('\u0000', '\uFFFD').toWellFormed()]
  return characters.length <= limit ? characters.join('') : `${characters.slice(0, limit - 1).join('')}…`
}
