/** "a, b and c" */
export function listOf(words: readonly string[]): string {
  return new Intl.ListFormat('en-GB').format(words)
}

/** Ends a text with a full stop, unless it ends as a sentence does. */
export function asSentence(text: string): string {
  return /[.?]$/.test(text) ? text : `${text}.`
}

export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
