import { createHmac } from 'node:crypto'
import { idFromUuid, uuidFromId } from '@workspace-wallet/contract'
import { uuidv7obj } from 'uuidv7'

/**
 * Ids of API keys carry a checksumKey: the last 32 of a UUIDv7's random bits are an HMAC of all that stand before them. So a
 * gateway knows a guess for what it is without asking anybody.
 */
const checksumDigits = 8

/** A new id of an API key. @param checksumKey the key of the checksumKey */
export function mintKeyId(checksumKey: string): string {
  const open = uuidv7obj().toHex().slice(0, -checksumDigits)
  return idFromUuid('apiKey', open + checksumOf(checksumKey, open))
}

/** Whether an id may be one that was minted under this checksumKey; of four billion guesses one is. */
export function hasKeyIdChecksum(checksumKey: string, apiKey: string): boolean {
  const hex = uuidFromId('apiKey', apiKey)?.replaceAll('-', '')
  return hex !== undefined && hex.slice(-checksumDigits) === checksumOf(checksumKey, hex.slice(0, -checksumDigits))
}

function checksumOf(checksumKey: string, open: string): string {
  return createHmac('sha256', checksumKey).update(open).digest('hex').slice(0, checksumDigits)
}
