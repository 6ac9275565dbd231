/** Which core to speak to: the one that the environment names, else the one that `npm start` runs here. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readJson } from '../start/private-file.ts'

export interface CoreAddress {
  urls: string[]
  token: string
  /** Where this was found, for sentences about it. */
  source: string
}

/** @throws Error with a sentence that says what is missing */
export async function findCore(environment: NodeJS.ProcessEnv): Promise<CoreAddress> {
  const { CORE_URL: url } = environment
  const token = environment.CORE_TOKEN || (await readToken(environment.CORE_TOKEN_FILE))
  if (url && token) return { urls: url.split(',').map(parseUrl), token, source: 'CORE_TOKEN' }
  // A token goes to the address that it belongs to, and nowhere else.
  if (url) throw new Error('CORE_URL is set and CORE_TOKEN is not: set it to a service token of role admin.')
  if (token) throw new Error('CORE_TOKEN is set and CORE_URL is not: set it to the URL of core.')
  return findEmbeddedCore(environment.DATA_DIR || '.data')
}

/** As the services do: a container gets its secrets in files. */
async function readToken(file: string | undefined): Promise<string | undefined> {
  if (!file) return undefined
  try {
    return (await readFile(file, 'utf8')).trim()
  } catch {
    throw new Error(`CORE_TOKEN_FILE names ${file}, which cannot be read.`)
  }
}

async function findEmbeddedCore(dataDir: string): Promise<CoreAddress> {
  const file = join(dataDir, 'core.json')
  const found = (await readJson(file).catch(error => refuseToRead(file, error))) as
    | { coreUrl?: unknown; adminToken?: unknown }
    | undefined
  if (found === undefined)
    throw new Error(
      `No core is known here (there is no ${file}): start the service with npm start, or set CORE_URL and CORE_TOKEN.`,
    )
  const { coreUrl, adminToken } = found
  if (typeof coreUrl !== 'string' || typeof adminToken !== 'string')
    throw new Error(`${file} does not name coreUrl and adminToken: start the service again with npm start.`)
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
    throw new Error(`${file} may be read only by the user who runs npm start: run this as that user.`)
  throw code ? new Error(`${file} cannot be read (${code}).`) : new Error(message)
}
