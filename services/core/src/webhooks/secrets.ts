import { createHmac, randomBytes } from 'node:crypto'
import { decryptSecret, type KeyRing } from '@workspace-wallet/runtime'
import type { Webhook } from './entities.ts'

const secretPrefix = 'whsec_'

/** A secret in the form of Standard Webhooks 1.0. */
export function newWebhookSecret(): string {
  return secretPrefix + randomBytes(32).toString('base64')
}

/**
 * The secrets that sign the deliveries of a webhook, newest first. During the grace of a rotation there are two.
 *
 * @throws Error if one does not decrypt
 */
export function secretsOf(keyRing: KeyRing, webhook: Webhook, now: Date): string[] {
  const { id, workspaceId, secret, secretVersion: version, previousSecret, previousSecretUntil } = webhook
  const current = decryptSecret(keyRing, { id, workspaceId, version }, secret)
  if (!previousSecret || !previousSecretUntil || previousSecretUntil <= now) return [current]
  return [current, decryptSecret(keyRing, { id, workspaceId, version: version - 1 }, previousSecret)]
}

/** The headers of a delivery in Standard Webhooks 1.0: the receiver checks that one of the signatures is valid. */
export function signatureHeaders(
  secrets: readonly string[],
  { eventId, body, at }: { eventId: string; body: string; at: Date },
): Record<string, string> {
  const timestamp = String(Math.floor(at.getTime() / 1000))
  const signatures = secrets.map(secret => {
    const key = Buffer.from(secret.slice(secretPrefix.length), 'base64')
    return `v1,${createHmac('sha256', key).update(`${eventId}.${timestamp}.${body}`).digest('base64')}`
  })
  return { 'webhook-id': eventId, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') }
}
