import { glob, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Source } from './boundaries.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** The TypeScript of the tree, by path from its root. */
export async function readSources(): Promise<Source[]> {
  const sources: Source[] = []
  for await (const path of glob('{packages,services,gateway,cli,tools,deploy,test,examples}/**/*.ts', {
    cwd: root,
    exclude: name => name === 'node_modules',
  }))
    sources.push({ path, text: await readFile(root + path, 'utf8') })
  return sources
}
