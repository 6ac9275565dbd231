/** The secrets of an embedded installation: made once, kept in DATA_DIR/secrets.json, readable by their owner alone. */
import { randomBytes } from 'node:crypto'
import { chmod, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { readJson, writePrivateJson } from './private-file.ts'

export interface Secrets {
  superuserPassword: string
  servicePassword: string
  /** `id:base64` of 32 bytes, comma separated; encrypts API secrets. */
  keyEncryptionKeys: string
  /** Base64 of 32 bytes; keys the HMAC chain over wallet flows. */
  ledgerChainKey: string
  gatewayToken: string
  serviceToken: string
  fundingToken: string
  adminToken: string
}

export async function loadSecrets(dataDir: string, databaseDir: string): Promise<Secrets> {
  const path = join(dataDir, 'secrets.json')
  const stored = await readJson(path)
  if (stored !== undefined) {
    await chmod(path, 0o600)
    return completeSecrets(path, stored, makeSecrets())
  }
  // New secrets would not open what the lost ones encrypted.
  if ((await readdir(databaseDir).catch(() => [])).length > 0)
    throw new Error(`${path} is gone but ${databaseDir} is there: restore it from a copy, or move ${dataDir} away.`)
  const made = makeSecrets()
  await writePrivateJson(path, made)
  return made
}

export function makeSecrets(): Secrets {
  const token = () => randomBytes(32).toString('base64url')
  return {
    superuserPassword: token(),
    servicePassword: token(),
    keyEncryptionKeys: `k1:${randomBytes(32).toString('base64')}`,
    ledgerChainKey: randomBytes(32).toString('base64'),
    gatewayToken: token(),
    serviceToken: token(),
    fundingToken: token(),
    adminToken: token(),
  }
}

/** What is stored, when it has every secret that there is in `example`. @throws Error naming the first that it lacks */
export function completeSecrets<Kind extends object>(path: string, stored: unknown, example: Kind): Kind {
  const found = (typeof stored === 'object' && stored !== null ? stored : {}) as Record<string, unknown>
  for (const name of Object.keys(example))
    if (typeof found[name] !== 'string' || found[name] === '')
      throw new Error(`${path} lacks ${name}: restore the file from a copy.`)
  return found as Kind
}
