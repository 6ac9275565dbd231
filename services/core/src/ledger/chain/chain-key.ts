import { createHmac, type KeyObject } from 'node:crypto'
import type { Pool } from 'pg'
import { run, statement } from '../../database/statement.ts'

const keepFingerprintStatement = statement(
  'keep-chain-fingerprint',
  'insert into chain_key (fingerprint) values ($1) on conflict do nothing',
)
const readFingerprintStatement = statement<{ fingerprint: Buffer }>(
  'read-chain-fingerprint',
  'select fingerprint from chain_key',
)

/**
 * Whether this is the key that the ledger's chain began with. The first core to call this on a new database stores the
 * key's fingerprint. Without the check, a core with another key would break the chain, and only the next verification
 * would report it.
 */
export async function isChainKey(db: Pool, chainKey: KeyObject): Promise<boolean> {
  const fingerprint = chainKeyFingerprint(chainKey)
  await run(db, keepFingerprintStatement, [fingerprint])
  const [stored] = await run(db, readFingerprintStatement, [])
  return stored?.fingerprint.equals(fingerprint) ?? false
}

/** It does not reveal the key. */
export function chainKeyFingerprint(chainKey: KeyObject): Buffer {
  return createHmac('sha256', chainKey).update('chain key fingerprint v1').digest()
}

/** The key of the checksum in API key IDs. It is derived from the chain key, which never changes and which all cores have. */
export function deriveKeyIdChecksumKey(chainKey: KeyObject): string {
  return createHmac('sha256', chainKey).update('checksum of api key ids v1').digest('base64')
}

/** The key of the checksum in tokens of operators. */
export function deriveOperatorChecksumKey(chainKey: KeyObject): string {
  return createHmac('sha256', chainKey).update('checksum of operator tokens v1').digest('base64')
}

/** The key of the nonce store, for gateways. It never changes either, so that all gateways always have the same one. */
export function deriveNonceKey(chainKey: KeyObject): string {
  return createHmac('sha256', chainKey).update('nonce store v1').digest('base64')
}
