/** The secrets of `npm start`: created once, stored in DATA_DIR/secrets.json, readable by their owner only. */
import { randomBytes } from 'node:crypto'
import { chmod, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { readJson, writePrivateJson } from './private-file.ts'

export interface Secrets {
  superuserPassword: string
  servicePassword: string
  /** Key-encryption keys for API secrets: `id:base64` of 32 bytes each, separated by commas. */
  keyEncryptionKeys: string
  /** Key of the MAC chain over wallet flows: base64 of 32 bytes. */
  ledgerChainKey: string
  /** Keys of receipts: `id:base64` of 32 bytes each, separated by commas. */
  receiptKeys: string
  gatewayToken: string
  serviceToken: string
  fundingToken: string
  courierToken: string
  adminToken: string
}

/** @throws Error that says how to restore the file, if it is missing next to a database, damaged or incomplete */
export async function loadSecrets(dataDir: string, databaseDir: string): Promise<Secrets> {
  const path = join(dataDir, 'secrets.json')
  const stored = await readJson(path)
  if (stored !== undefined) {
    await chmod(path, 0o600)
    return requireComplete(path, stored, makeSecrets())
  }
  // New secrets cannot decrypt what the lost ones encrypted.
  if ((await readdir(databaseDir).catch(() => [])).length > 0)
    throw new Error(
      `${path} is missing, but its database exists in ${databaseDir}: restore the file from a copy, or move ${dataDir} away.`,
    )
  const made = makeSecrets()
  await writePrivateJson(path, made)
  return made
}

/** 256 random bits, base64url. */
export function makeToken(): string {
  return randomBytes(32).toString('base64url')
}

export function makeSecrets(): Secrets {
  return {
    superuserPassword: makeToken(),
    servicePassword: makeToken(),
    keyEncryptionKeys: `k1:${randomBytes(32).toString('base64')}`,
    ledgerChainKey: randomBytes(32).toString('base64'),
    receiptKeys: `r1:${randomBytes(32).toString('base64')}`,
    gatewayToken: makeToken(),
    serviceToken: makeToken(),
    fundingToken: makeToken(),
    courierToken: makeToken(),
    adminToken: makeToken(),
  }
}

/**
 * The stored secrets, if they have every property of `example`.
 *
 * @throws Error that names the first missing secret
 */
export function requireComplete<Kind extends object>(path: string, stored: unknown, example: Kind): Kind {
  const found = (typeof stored === 'object' && stored !== null ? stored : {}) as Record<string, unknown>
  for (const name of Object.keys(example))
    if (typeof found[name] !== 'string' || found[name] === '')
      throw new Error(`${path} lacks ${name}: restore the file from a copy.`)
  return found as Kind
}

/** The secrets of core, by environment variable. */
export function coreSecrets(secrets: Secrets): Record<string, string> {
  return {
    KEY_ENCRYPTION_KEYS: secrets.keyEncryptionKeys,
    LEDGER_CHAIN_KEY: secrets.ledgerChainKey,
    RECEIPT_KEYS: secrets.receiptKeys,
    SERVICE_TOKENS: [
      `gateway:gateway:${secrets.gatewayToken}`,
      `service:service:${secrets.serviceToken}`,
      `funding:funding:${secrets.fundingToken}`,
      `courier:courier:${secrets.courierToken}`,
      `admin:admin:${secrets.adminToken}`,
    ].join(','),
  }
}

/** The secrets of the gateway, by environment variable. */
export function gatewaySecrets(secrets: Secrets): Record<string, string> {
  return { CORE_TOKEN: secrets.gatewayToken, KEY_ENCRYPTION_KEYS: secrets.keyEncryptionKeys }
}

/** The secrets of the courier, by environment variable. */
export function courierSecrets(secrets: Secrets): Record<string, string> {
  return { CORE_TOKEN: secrets.courierToken }
}
