/**
 * The path of a key that a JSON text repeats within one object; null if it repeats none. JSON.parse keeps the last one
 * silently.
 *
 * @param text valid JSON
 * @param value what it was parsed to: it has fewer keys than the text if one is repeated, which is quickly found out
 */
export function findRepeatedKey(text: string, value: unknown): (string | number)[] | null {
  return countKeysOfText(text) === countKeys(value) ? null : locateRepeatedKey(text)
}

/** A string, with the colon after it if it is a key. */
const stringPattern = /"[^"\\]*(?:\\.[^"\\]*)*"(?:\s*:)?/g

function countKeysOfText(text: string): number {
  return text.match(stringPattern)?.filter(isKey).length ?? 0
}

function isKey(token: string): boolean {
  return token.endsWith(':')
}

function countKeys(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const children = Object.values(value)
  return children.reduce<number>((sum, child) => sum + countKeys(child), Array.isArray(value) ? 0 : children.length)
}

const tokenPattern = new RegExp(`${stringPattern.source}|[{}[\\],]`, 'g')

/** An object with its keys so far, or an array. `at`: the current key or index. */
type Container = { keys: Set<string> | null; at: string | number }

function locateRepeatedKey(text: string): (string | number)[] | null {
  const open: Container[] = []
  for (const [token] of text.matchAll(tokenPattern)) {
    const current = open.at(-1)
    if (token === '{') open.push({ keys: new Set(), at: '' })
    else if (token === '[') open.push({ keys: null, at: 0 })
    else if (token === '}' || token === ']') open.pop()
    else if (token === ',' && current?.keys === null) current.at = Number(current.at) + 1
    else if (isKey(token) && current?.keys) {
      current.at = JSON.parse(token.replace(/\s*:$/, '')) as string
      if (current.keys.has(current.at)) return open.map(({ at }) => at)
      current.keys.add(current.at)
    }
  }
  return null
}
