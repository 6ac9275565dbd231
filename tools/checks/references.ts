import { posix } from 'node:path'
import type { Source } from './sources.ts'

/** What a text can name. */
export type Names = {
  /** The files of the repository, relative to its root. */
  paths: readonly string[]
  /** Every word of the code. */
  words: ReadonlySet<string>
  /** The text of each file. */
  texts: ReadonlyMap<string, string>
}

/** Files that programs, operators or other packages write. */
const writtenElsewhere =
  /^(\.data|DATA_DIR|node_modules)\/|(^|\/)(secrets|core|demo)\.json$|^(shop|nonces)\.db$|^docker-compose\.override\.yml$|^(index|decimal)\.js$|^lib\.dom\.d\.ts$|^(redis|postgresql|pg_hba)\.conf$/
/** Symbols of other programs. */
const elsewhere = new Set(['SyncRep', 'onRequestBuilt'])

const folders = 'packages|services|gateway|cli|tools|deploy|test|examples|docs'
const extensions = 'ts|cjs|js|sql|sh|py|lua|go|java|php|rb|md|json|yml|cfg|conf|db|html|css|pgbench'
/** A file name with its extension, alone or after folders, or a path from the root. `*` and `{a,b}` are patterns. */
const pathPattern = new RegExp(
  `(?<![\\w./:@$}*-])((?:[\\w.@*{},-]+/)*[\\w.*{}-]+\\.(?:${extensions})|(?:${folders})/[\\w.@*{},/-]*[\\w*}])/?(?![\\w(-]|\\.\\w)`,
  'g',
)
const commentPattern = /(?:^|\s)(?:\/\/|\/?\*+|#|--)\s(.*)$/
const symbolPattern = /(?<![\w.$-])[A-Za-z]*[a-z][A-Z]\w*/g

/**
 * Files and symbols that documentation and comments name and that do not exist, as `path:line name`: files in backticks and
 * in comments, the targets of links, and camelCase symbols in backticks. A file may be named by the end of its path.
 */
export function missingReferences(source: Source, names: Names): string[] {
  const isMarkdown = source.path.endsWith('.md')
  const text = isMarkdown ? withoutBlocks(source.text) : source.text
  return text.split('\n').flatMap((line, at) => {
    const missing = isMarkdown ? missingInMarkdown(source.path, line, names) : missingPaths(commentOf(line), names)
    return missing.map(name => `${source.path}:${at + 1} ${name}`)
  })
}

/** The same lines, with those of code blocks empty. */
function withoutBlocks(markdown: string): string {
  return markdown.replaceAll(/^```.*?^```$/gms, block => block.replaceAll(/[^\n]/g, ''))
}

function commentOf(line: string): string {
  return commentPattern.exec(line)?.[1] ?? ''
}

function missingInMarkdown(path: string, line: string, names: Names): string[] {
  const quoted = [...line.matchAll(/`([^`]+)`/g)].map(([, code]) => code!)
  const symbols = quoted.flatMap(code => [...code.matchAll(symbolPattern)].map(([symbol]) => symbol))
  return [
    ...quoted.flatMap(code => missingPaths(code, names)),
    ...symbols.filter(symbol => !names.words.has(symbol) && !elsewhere.has(symbol)),
    ...[...line.matchAll(/`(\w+)`,? (?:in|of) `([\w./-]+\.ts)`/g)]
      .filter(([, symbol, file]) => !textsOf(file!, names).some(text => new RegExp(`\\b${symbol}\\b`).test(text)))
      .map(([named]) => named),
    ...[...line.matchAll(/\]\(([^)]+)\)/g)]
      .map(([, target]) => target!)
      .filter(target => !isLinked(path, target, names)),
  ]
}

function missingPaths(text: string, { paths }: Names): string[] {
  return [...text.matchAll(pathPattern)]
    .map(([, path]) => path!)
    .filter(path => !writtenElsewhere.test(path) && !paths.some(existing => matcherOf(path).test(existing)))
}

/** Matches the files and the folders that a text can mean with a path. A decision may be named by its number. */
function matcherOf(path: string): RegExp {
  const pattern = path
    .replace(/^(\.{1,2}\/)+/, '')
    .replaceAll(/[.+?^$()|[\]\\]/g, '\\$&')
    .replaceAll(/\{([^}]*)\}/g, (_, names: string) => `(${names.replaceAll(',', '|')})`)
    .replaceAll('**', '.+')
    .replaceAll(/(?<!\.)\*/g, '[^/]*')
  return new RegExp(`(^|/)${pattern}($|/${/decisions\/\d{4}$/.test(path) ? '|-' : ''})`)
}

function textsOf(file: string, { texts }: Names): string[] {
  return [...texts].filter(([path]) => matcherOf(file).test(path)).map(([, text]) => text)
}

function isLinked(path: string, target: string, { paths, texts }: Names): boolean {
  if (/^(https?|mailto):/.test(target)) return true
  const [file, anchor] = target.split('#') as [string, string?]
  const linked = file ? posix.join(posix.dirname(path), file) : path
  if (!paths.some(existing => existing === linked || existing.startsWith(`${linked.replace(/\/$/, '')}/`))) return false
  if (anchor === undefined || !linked.endsWith('.md')) return true
  return [...(texts.get(linked) ?? '').matchAll(/^#+ (.*)$/gm)].some(([, heading]) => anchorOf(heading!) === anchor)
}

/** The anchor that GitHub gives a heading. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-')
}
