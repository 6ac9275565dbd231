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
  /^(\.data|DATA_DIR|node_modules|dist|tls)\/|(^|\/)(secrets|core|demo)\.json$|^(shop|nonces)\.db$|^docker-compose\.override\.yml$|^(index|decimal)\.js$|^lib\.dom\.d\.ts$|^(redis|postgresql|pg_hba)\.conf$/
/** Symbols of other programs. */
const elsewhere = new Set(['SyncRep', 'onRequestBuilt'])

const folders = 'packages|services|gateway|cli|tools|deploy|test|examples|docs'
const extensions = 'ts|cjs|mjs|js|sql|sh|py|lua|go|java|php|rb|md|json|yml|cfg|conf|db|html|css|svg|pgbench'
/** A file name with its extension, alone or after folders, or a path from the root. `*` and `{a,b}` are patterns. */
const pathPattern = new RegExp(
  `(?<![\\w./:@$}*-])((?:[\\w.@*{},-]+/)*[\\w.*{}-]+\\.(?:${extensions})|(?:${folders})/[\\w.@*{},/-]*[\\w*}])/?(?![\\w(-]|\\.\\w)`,
  'g',
)
/** Folders in backticks, as in `ledger/decide`. */
const folderPattern = /^[a-z][\w.-]*(\/[\w.*{},-]+)+\/?$/
const mediaTypePattern = /^(application|text)\//
/** A path from the root, in a code block. Blocks also name the reader's own files. */
const rootedPattern = new RegExp(`(?<![\\w./:@$}*-])((?:${folders})/[\\w.@*{},/-]*[\\w*}])(?![\\w(-]|\\.\\w)`, 'g')
const commentPattern = /(?:^|\s)(?:\/\/|\/?\*+|#|--)\s(.*)$/
const symbolPattern = /(?<![\w.$-])[A-Za-z]*[a-z][A-Z]\w*/g

/**
 * Files and symbols that documentation and comments name and that do not exist, as `path:line name`: files and folders in
 * backticks and in comments, paths from the root in code blocks, the targets of links, and camelCase symbols in backticks. A
 * file may be named by the end of its path.
 */
export function missingReferences(source: Source, names: Names): string[] {
  const isMarkdown = source.path.endsWith('.md')
  const blocks = isMarkdown ? linesOfBlocks(source.text) : new Set<number>()
  return source.text.split('\n').flatMap((line, at) => {
    const missing = blocks.has(at)
      ? missingPaths(line, names, rootedPattern)
      : isMarkdown
        ? missingInMarkdown(source.path, line, names)
        : missingPaths(commentOf(line), names)
    return missing.map(name => `${source.path}:${at + 1} ${name}`)
  })
}

/** The numbers of the lines in code blocks, fenced or indented. Continued list items are indented by less than four spaces. */
function linesOfBlocks(markdown: string): Set<number> {
  let fenced = false
  const lines = markdown.split('\n').flatMap((line, at) => {
    if (line.startsWith('```')) fenced = !fenced
    return fenced || line.startsWith('    ') ? [at] : []
  })
  return new Set(lines)
}

function commentOf(line: string): string {
  return commentPattern.exec(line)?.[1] ?? ''
}

function missingInMarkdown(path: string, line: string, names: Names): string[] {
  const quoted = [...line.matchAll(/`([^`]+)`/g)].map(([, code]) => code!)
  const symbols = quoted.flatMap(code => [...code.matchAll(symbolPattern)].map(([symbol]) => symbol))
  return [
    ...quoted.flatMap(code => missingPaths(code, names, folderPattern.test(code) ? /(.+?)\/?$/g : pathPattern)),
    ...symbols.filter(symbol => !names.words.has(symbol) && !elsewhere.has(symbol)),
    ...[...line.matchAll(/`(\w+)`,? (?:in|of) `([\w./-]+\.ts)`/g)]
      .filter(([, symbol, file]) => !textsOf(file!, names).some(text => new RegExp(`\\b${symbol}\\b`).test(text)))
      .map(([named]) => named),
    ...[...line.matchAll(/\]\(([^)]+)\)/g)]
      .map(([, target]) => target!)
      .filter(target => !isLinked(path, target, names)),
  ]
}

function missingPaths(text: string, { paths }: Names, pattern = pathPattern): string[] {
  return [...text.matchAll(pattern)]
    .map(([, path]) => path!)
    .filter(
      path =>
        !mediaTypePattern.test(path) &&
        !writtenElsewhere.test(path) &&
        !paths.some(existing => matcherOf(path).test(existing)),
    )
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
