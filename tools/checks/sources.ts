import type { Dirent } from 'node:fs'
import { glob, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A file of the repository. `path` is relative to the root. */
export type Source = { path: string; text: string }

const root = fileURLToPath(new URL('../../', import.meta.url))
const folders = '{packages,services,gateway,cli,tools,deploy,test,examples}'

export const isIn = (path: string, ...folders: string[]) => folders.some(folder => path.startsWith(`${folder}/`))
export const isTest = (path: string) => path.endsWith('.test.ts') || isIn(path, 'test') || path === 'vitest.config.ts'

/** All TypeScript files. */
export function readSources(): Promise<Source[]> {
  return readAll(['**/*.{ts,tsx}'])
}

/** Code, configuration and documentation. */
export async function readTexts(): Promise<Source[]> {
  const patterns = [
    `${folders}/**/*.{ts,tsx,cjs,sh,sql,json,lua,yml,cfg,py,md}`,
    'docs/**/*.md',
    '*.{md,yml,json}',
    'Dockerfile',
  ]
  const texts = await readAll([...patterns, '.env.example', '.github/**/*'])
  return texts.filter(({ path }) => path !== 'package-lock.json')
}

/** The paths of all files, relative to the root. */
export async function readPaths(): Promise<string[]> {
  const files = await Array.fromAsync(glob('**', { cwd: root, exclude, withFileTypes: true }))
  return files.filter(entry => entry.isFile()).map(entry => relative(root, join(entry.parentPath, entry.name)))
}

const exclude = ({ name }: Dirent) => ['node_modules', '.git', '.data', 'dist'].includes(name)

async function readAll(patterns: string[]): Promise<Source[]> {
  const sources: Source[] = []
  for await (const entry of glob(patterns, { cwd: root, exclude, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const file = join(entry.parentPath, entry.name)
    sources.push({ path: relative(root, file), text: await readFile(file, 'utf8') })
  }
  return sources
}
