import { createHmac } from 'node:crypto'
import { type Id, idFromUuid, type Uuid, uuidFromId } from '@workspace-wallet/contract'
import { uuidv7obj } from 'uuidv7'

/**
 * IDs of API keys contain a keyed checksum: the last 32 random bits of the UUIDv7 are an HMAC of all bits before them. A
 * gateway thereby recognizes guessed IDs without asking core (docs/decisions/0010).
 */
const checksumDigits = 8

/** A new ID of an API key. */
export function mintKeyId(checksumKey: string): Id<'apiKey'> {
  const prefix = uuidv7obj().toHex().slice(0, -checksumDigits)
  return idFromUuid('apiKey', (prefix + checksumOf(checksumKey, prefix)) as Uuid<'apiKey'>)
}

/** Whether an ID can have been created with this checksum key. One of four billion guesses has a valid checksum. */
export function hasKeyIdChecksum(checksumKey: string, apiKey: string): boolean {
  const hex = uuidFromId('apiKey', apiKey)?.replaceAll('-', '')
  return hex !== undefined && hex.slice(-checksumDigits) === checksumOf(checksumKey, hex.slice(0, -checksumDigits))
}

function checksumOf(checksumKey: string, prefix: string): string {
  return createHmac('sha256', checksumKey).update(prefix).digest('hex').slice(0, checksumDigits)
}
