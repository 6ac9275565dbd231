/** Texts and JSON values as literals of the languages of the samples. */

export function indentedJson(value: unknown): string {
  return JSON.stringify(value, null, 2)
}

/** In single quotes, in which a POSIX shell replaces nothing. */
export function shellString(text: string): string {
  return /^[\w./:=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}

/** JSON is the syntax of Python, except for three names. @param indent the spaces before the lines after the first */
export function pythonValue(value: unknown, indent = 0): string {
  if (value === null) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (typeof value !== 'object') return JSON.stringify(value)
  const entries = Array.isArray(value)
    ? value.map(item => pythonValue(item, indent + 4))
    : Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}: ${pythonValue(item, indent + 4)}`)
  return bracketed(entries, Array.isArray(value) ? '[]' : '{}', indent, 4)
}

export function javaScriptValue(value: unknown, indent = 0): string {
  if (typeof value === 'string') return javaScriptString(value)
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const entries = Array.isArray(value)
    ? value.map(item => javaScriptValue(item, indent + 2))
    : Object.entries(value).map(([name, item]) => `${keyOf(name)}: ${javaScriptValue(item, indent + 2)}`)
  return bracketed(entries, Array.isArray(value) ? '[]' : '{}', indent, 2)
}

const keyOf = (name: string) => (/^[a-z]\w*$/i.test(name) ? name : javaScriptString(name))

function javaScriptString(text: string): string {
  return `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`
}

/** A raw string, unless the text has a character that raw strings cannot have. */
export function goString(text: string): string {
  return text.includes('\n') && !/[`\r\uFEFF\0]/.test(text) ? `\`${text}\`` : JSON.stringify(text)
}

function bracketed(entries: string[], [open, close]: string, indent: number, step: number): string {
  if (entries.length === 0) return `${open}${close}`
  const lines = entries.map(entry => `${' '.repeat(indent + step)}${entry},\n`)
  return `${open}\n${lines.join('')}${' '.repeat(indent)}${close}`
}
