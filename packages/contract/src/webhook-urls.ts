import type { z } from 'zod'
import type { FieldReason } from './errors.ts'

export const maxUrlLength = 2048

/** What the URL parser would change or skip without an error: control characters, spaces, backslashes, an empty host. */
const plainUrl = /^https?:\/\/[^/?#\\]+(?:[/?#][^\\]*)?$/i

/**
 * What is wrong with the URL of a webhook; null if nothing is. Whether its address is allowed depends on the configuration
 * of core and courier.
 */
export function webhookUrlFault(text: string): FieldReason | null {
  if (!/^[!-~]+$/.test(text) || !plainUrl.test(text) || !URL.canParse(text)) return 'NOT_A_URL'
  const [, , authority = ''] = text.split(/[/?#]/)
  if (authority.includes('@')) return 'HAS_CREDENTIALS'
  if (text.includes('#')) return 'HAS_FRAGMENT'
  return null
}

/** The check of a schema. Its message is a FieldReason. */
export function checkWebhookUrl(context: z.core.ParsePayload<string>): void {
  const reason = webhookUrlFault(context.value)
  if (reason) context.issues.push({ code: 'custom', message: reason, input: context.value })
}
