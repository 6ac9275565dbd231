/** "a, b and c" */
export function listOf(words: readonly string[]): string {
  return new Intl.ListFormat('en-GB').format(words)
}

/** "1 wallet", "2 wallets" */
export function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

/** Adds a full stop, unless the text already ends with one or with a question mark. */
export function asSentence(text: string): string {
  return /[.?]$/.test(text) ? text : `${text}.`
}

export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
