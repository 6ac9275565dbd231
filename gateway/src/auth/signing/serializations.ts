// Without modules of Node: see mistakes.ts.

/** Deeper bodies are not serialized: indentation would make them many times as long. The deepest body of the API has three levels. */
const maxDepth = 4

/** A JSON body as other libraries write it; empty if it is not JSON. */
export function serializationsOf(body: string): string[] {
  const value = parse(body)
  if (!isShallow(value, maxDepth)) return []
  return [value, sorted(value)].flatMap(each => {
    const compact = JSON.stringify(each)
    const spaced = withSpaces(compact)
    return [
      compact,
      spaced,
      inAscii(spaced), // json.dumps of Python
      inAscii(compact),
      inAscii(compact).replaceAll('/', '\\/'), // json_encode of PHP
      compact.replaceAll(/[<>&]/g, escaped), // json.Marshal of Go
      JSON.stringify(each, null, 2),
      JSON.stringify(each, null, 4),
    ]
  })
}

/** Undefined, which is not shallow, if the text is not JSON. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isShallow(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return value !== undefined
  return depth > 0 && Object.values(value).every(child => isShallow(child, depth - 1))
}

/** A shallow value with the keys of all objects in order. */
function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(sorted)
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([key, child]) => [key, sorted(child)]))
}

/** A space after each comma and colon outside strings. */
function withSpaces(json: string): string {
  return json.replaceAll(/"[^"\\]*(?:\\.[^"\\]*)*"|[,:]/g, token => (token.length > 1 ? token : `${token} `))
}

function inAscii(json: string): string {
  return json.replaceAll(/[\u007f-\uffff]/g, escaped)
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
