import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { basename } from 'node:path'

/** The folder of the browser's modules in URLs. */
const folder = '/docs/assets/'

/**
 * A script of a page and all modules that it imports, as JavaScript by URL path. The script is the first. Types are removed
 * here, without a build step. Imports become URL paths, because the Content-Security-Policy allows no import map.
 *
 * @param file URL of the TypeScript file
 * @throws Error if two modules would get the same URL
 */
export function browserModules(file: URL): Map<string, string> {
  const files = new Map<string, string>()
  const modules = new Map<string, string>()
  const add = (source: string) => {
    const path = pathOf(source)
    if (files.has(path) && files.get(path) !== source)
      throw new Error(`${files.get(path)} and ${source} are both ${path}`)
    if (files.has(path)) return
    files.set(path, source)
    const code = stripTypes(readFileSync(new URL(source), 'utf8'))
    modules.set(
      path,
      code.replaceAll(importPattern, (_, before, name) => `${before}'${pathOf(resolve(name, source))}'`),
    )
    for (const [, , name] of code.matchAll(importPattern)) add(resolve(name!, source))
  }
  add(file.href)
  return modules
}

/** An import or export declaration with a module name. It begins at the beginning of a line. */
const importPattern = /^((?:import|export)\b[^'"]*?\bfrom\s+)'([^']+)'/gm

const resolve = (name: string, from: string) =>
  name.startsWith('.') ? new URL(name, from).href : import.meta.resolve(name)

const pathOf = (file: string) => `${folder}${basename(file, '.ts')}.js`

/** Removes types, without the warning of Node that the function is experimental: the tests cover it. */
function stripTypes(code: string): string {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return stripTypeScriptTypes(code)
  } finally {
    process.emitWarning = emitWarning
  }
}
