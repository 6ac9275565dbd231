/** Finds the core to call: the one in the environment, else the one that `npm start` runs. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { dataDirOf } from '../command-line/data-dir.ts'
import { readJson } from '../start/private-file.ts'

export interface CoreAddress {
  urls: string[]
  token: string
  /** Where the token was found, for error messages. */
  source: string
}

/** @throws Error that says what is missing and how to set it */
export async function findCore(environment: NodeJS.ProcessEnv): Promise<CoreAddress> {
  const { CORE_URL: url } = environment
  const token = environment.CORE_TOKEN || (await readToken(environment.CORE_TOKEN_FILE))
  if (url && token) return { urls: url.split(',').map(parseUrl), token, source: 'CORE_TOKEN' }
  // Never combined with the other half from DATA_DIR: that would send a token to a core that it does not belong to.
  if (url)
    throw new Error('CORE_URL is set but CORE_TOKEN is not: set CORE_TOKEN to a service token with the role admin.')
  if (token) throw new Error('CORE_TOKEN is set but CORE_URL is not: set CORE_URL to the URL of core.')
  return findEmbeddedCore(dataDirOf(environment))
}

/** Containers get their secrets in files. */
async function readToken(file: string | undefined): Promise<string | undefined> {
  if (!file) return undefined
  try {
    return (await readFile(file, 'utf8')).trim()
  } catch {
    throw new Error(`Cannot read ${file}, which CORE_TOKEN_FILE names: correct the path or the permissions.`)
  }
}

async function findEmbeddedCore(dataDir: string): Promise<CoreAddress> {
  const file = join(dataDir, 'core.json')
  const found = (await readJson(file).catch(error => refuseToRead(file, error))) as
    | { coreUrl?: unknown; adminToken?: unknown }
    | undefined
  if (found === undefined)
    throw new Error(`There is no ${file}: start the service with npm start, or set CORE_URL and CORE_TOKEN.`)
  const { coreUrl, adminToken } = found
  if (typeof coreUrl !== 'string' || typeof adminToken !== 'string')
    throw new Error(`${file} lacks coreUrl or adminToken: restart the service with npm start.`)
  return { urls: [parseUrl(coreUrl)], token: adminToken, source: file }
}

function parseUrl(text: string): string {
  const url = URL.parse(text.trim())
  if (!url || !['http:', 'https:'].includes(url.protocol))
    throw new Error(`CORE_URL must be a URL such as http://127.0.0.1:8081, not "${text}".`)
  return url.origin
}

function refuseToRead(file: string, error: unknown): never {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'EACCES' || code === 'EPERM')
    throw new Error(`Only the user who runs npm start may read ${file}: run this command as that user.`)
  throw new Error(code ? `Cannot read ${file} (${code}): correct DATA_DIR, or set CORE_URL and CORE_TOKEN.` : message)
}
