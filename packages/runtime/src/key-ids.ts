import { createHmac } from 'node:crypto'
import { idFromUuid, uuidFromId } from '@workspace-wallet/contract'
import { uuidv7obj } from 'uuidv7'

/**
 * Ids of API keys carry a seal: the last 32 of a UUIDv7's random bits are an HMAC of all that stand before them. So a
 * gateway knows a guess for what it is without asking anybody.
 */
const sealDigits = 8

/** A new id of an API key. @param seal the key of the seal */
export function mintKeyId(seal: string): string {
  const open = uuidv7obj().toHex().slice(0, -sealDigits)
  return idFromUuid('apiKey', open + sealOf(seal, open))
}

/** Whether an id may be one that was minted under this seal; of four billion guesses one is. */
export function isSealedKeyId(seal: string, apiKey: string): boolean {
  const hex = uuidFromId('apiKey', apiKey)?.replaceAll('-', '')
  return hex !== undefined && hex.slice(-sealDigits) === sealOf(seal, hex.slice(0, -sealDigits))
}

function sealOf(seal: string, open: string): string {
  return createHmac('sha256', seal).update(open).digest('hex').slice(0, sealDigits)
}
