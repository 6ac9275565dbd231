/** A request that the reader pasted. Names of headers are in lower case. */
export type PastedRequest = {
  method: string
  target: string
  headers: Map<string, string>
  body: string
  /** The file that curl read the body from; undefined if the command contains the body. */
  bodyFile: string | undefined
  /** What the shell replaced, such as `$nonce`. */
  variables: string[]
}

/** Parses a curl command or the text of an HTTP request; undefined if the text is neither. */
export function parsePastedRequest(text: string): PastedRequest | undefined {
  const trimmed = text.trimStart().replace(/^\$ /, '')
  return /^curl\s/.test(trimmed) ? parseCurl(trimmed) : parseHttp(trimmed)
}

function parseHttp(text: string): PastedRequest | undefined {
  const [, head = text, body = ''] = /^([\s\S]*?)\r?\n\r?\n([\s\S]*)$/.exec(text) ?? []
  const [first = '', ...lines] = head.split(/\r?\n/)
  const [, method, target] = /^([A-Za-z]+) (\/\S*|https?:\S+)(?: HTTP\/[\d.]+)?$/.exec(first.trimEnd()) ?? []
  if (!method || !target) return undefined
  return { method, target, headers: new Map(lines.map(headerOf)), body, bodyFile: undefined, variables: [] }
}

function headerOf(line: string): [string, string] {
  const colon = line.indexOf(':')
  return [line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim()]
}

const options: Record<string, 'method' | 'header' | 'data' | 'json' | 'url'> = {
  '-X': 'method',
  '--request': 'method',
  '-H': 'header',
  '--header': 'header',
  '-d': 'data',
  '--data': 'data',
  '--data-ascii': 'data',
  '--data-binary': 'data',
  '--data-raw': 'data',
  '--json': 'json',
  '--url': 'url',
}
/** Other options that take a value, which is no URL then. */
const otherOptions =
  /^(-[AbcCeEFKmoQrtTuUwxyYz]|--(user-agent|cookie|max-time|connect-timeout|output|user|write-out|proxy|retry|cacert))$/

/** A body with an @ is the name of a file. */
const isFile = (option: string, value: string) => option !== '--data-raw' && value.startsWith('@')

function parseCurl(command: string): PastedRequest | undefined {
  const words = shellWords(command).slice(1)
  const headers = new Map<string, string>()
  const bodies: string[] = []
  let bodyFile: string | undefined
  let method: string | undefined
  let target: string | undefined
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!
    // A short option may be written together with its value: -XPOST.
    const isJoined = /^-[XHd]./.test(word)
    const option = isJoined ? word.slice(0, 2) : word
    const kind = options[option]
    if (!kind && !option.startsWith('-')) target ??= option
    if (!kind && otherOptions.test(option)) at++
    if (!kind) continue
    const value = isJoined ? word.slice(2) : (words[++at] ?? '')
    if (kind === 'method') method = value
    else if (kind === 'url') target = value
    else if (kind === 'header') headers.set(...headerOf(value))
    else if (isFile(option, value)) bodyFile = value.slice(1)
    else bodies.push(value)
  }
  if (target === undefined) return undefined
  const hasBody = bodies.length > 0 || bodyFile !== undefined
  return {
    method: method ?? (hasBody ? 'POST' : 'GET'),
    target: target.split('#', 1)[0]!,
    headers,
    body: bodies.join('&'),
    bodyFile,
    variables: variablesIn(command),
  }
}

const wordPattern = /\$'((?:[^'\\]|\\[\s\S])*)'|'([^']*)'|"((?:[^"\\]|\\[\s\S])*)"|\\([\s\S])|([^\s'"\\]+)|(\s+)/g
const escapes: Record<string, string> = { n: '\n', r: '\r', t: '\t', 0: '\0' }

/** The words of a command in the quoting of bash and zsh. Variables stay as they are. */
export function shellWords(command: string): string[] {
  const words: string[] = []
  let word: string | undefined
  for (const [, ansi, single, double, escaped, plain, space] of command.matchAll(wordPattern)) {
    if (space !== undefined) {
      if (word !== undefined) words.push(word)
      word = undefined
    } else if (escaped !== '\n') {
      word = (word ?? '') + (unescapeAnsi(ansi) ?? single ?? unescapeDouble(double) ?? escaped ?? plain)
    }
  }
  return word === undefined ? words : [...words, word]
}

/** Variables and commands that a shell replaces: all outside of single quotes and without a backslash. */
function variablesIn(command: string): string[] {
  const expanded = [...command.matchAll(wordPattern)].map(([, , , double, , plain]) => double ?? plain ?? '')
  const found = expanded.flatMap(text => text.replaceAll(/\\[\s\S]/g, '').match(/\$(?:\w+|\{\w+\}|\()|`/g) ?? [])
  return [...new Set(found.map(name => (name === '$(' ? '$(…)' : name === '`' ? '`…`' : name)))]
}

const unescapeDouble = (text: string | undefined) =>
  text?.replaceAll(/\\([$`"\\\n])/g, (_, character) => (character === '\n' ? '' : character))

const unescapeAnsi = (text: string | undefined) =>
  text?.replaceAll(/\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|([\s\S]))/g, (_, byte, unit, character) =>
    byte || unit ? String.fromCharCode(Number.parseInt(byte ?? unit, 16)) : (escapes[character] ?? character),
  )
