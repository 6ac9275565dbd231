/** The pages whose commands `test/guides.test.ts` runs. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '../..')

export type Page = { path: string; title: string; text: string }
export type Step = { command: string; output: string }

function pageOf(path: string): Page {
  const text = readFileSync(join(root, path), 'utf8')
  return { path, title: /^# (.*)$/m.exec(text)![1]!, text }
}

/** The commands in the console blocks of a page, each with the output that the page shows. */
export function stepsOf({ text }: Page): Step[] {
  return [...text.matchAll(/^```console\n(.*?)^```$/gms)].flatMap(([, block]) =>
    block!
      .split(/^\$ /m)
      .slice(1)
      .map(step => ({ command: step.slice(0, step.indexOf('\n')), output: step.slice(step.indexOf('\n') + 1) })),
  )
}

export const readme = pageOf('README.md')
/** Sets the variables that all guides use, and links the guides in their order. */
export const index = pageOf('docs/guides/README.md')
const linked = [...index.text.matchAll(/^- \[[^\]]+\]\(([^)]+)\)/gm)].map(([, path]) => join('docs/guides', path!))
export const guides = linked.filter(path => path !== 'docs/versioning.md').map(pageOf)
export const shop = pageOf('examples/shop/README.md')

/** The files that a page tells its reader to save: each block of code begins with the name of its file. */
export function filesOf({ text }: Page): { path: string; text: string }[] {
  const blocks = text.matchAll(/^```(?:ts|js|python)\n(\S+ (\S+\.(?:ts|js|py))\n.*?)^```$/gms)
  return [...blocks].map(([, block, path]) => ({ path: path!, text: block! }))
}

/** The variables that commands set, and the functions that they define, each once. */
export function namesSetBy(commands: readonly string[]): { variables: string[]; functions: string[] } {
  const text = commands.join('\n')
  const namesIn = (pattern: RegExp) => [...new Set([...text.matchAll(pattern)].map(([, name]) => name!))]
  return {
    variables: [
      ...namesIn(/(?:^|[\s;&|({])([A-Za-z_]\w*)\+?=(?!=)/gm),
      ...namesIn(/\b(?:for|read|getopts \S+) ([A-Za-z_]\w*)\b/g),
    ],
    functions: namesIn(/(?:^|[\s;&|({])([\w.-]+) ?\(\)/gm),
  }
}
