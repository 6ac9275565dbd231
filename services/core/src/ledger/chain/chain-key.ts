import { createHmac, type KeyObject } from 'node:crypto'
import { UnsuitableSession } from '../../database/session-checks.ts'
import { type Queryable, run, statement } from '../../database/statement.ts'

const keepFingerprintStatement = statement(
  'keep-chain-fingerprint',
  'insert into chain_key (fingerprint) values ($1) on conflict do nothing',
)
const readFingerprintStatement = statement<{ fingerprint: Buffer }>(
  'read-chain-fingerprint',
  'select fingerprint from chain_key',
)

/** The tables were written with another chain key. */
export class WrongChainKey extends UnsuitableSession {
  constructor() {
    super('LEDGER_CHAIN_KEY is not the key that this ledger was written with: give core the original key.')
  }
}

/**
 * Requires the key that the ledger's chain began with, of each connection. The first core on a new database stores the key's fingerprint.
 * A core with another key would find no row genuine, halt all workspaces that it reads, and break the chain.
 *
 * @throws WrongChainKey
 */
export async function requireChainKey(db: Queryable, chainKey: KeyObject): Promise<void> {
  const fingerprint = chainKeyFingerprint(chainKey)
  const read = () => run(db, readFingerprintStatement, [])
  let [stored] = await read()
  if (!stored) {
    await run(db, keepFingerprintStatement, [fingerprint])
    ;[stored] = await read()
  }
  if (!stored?.fingerprint.equals(fingerprint)) throw new WrongChainKey()
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
