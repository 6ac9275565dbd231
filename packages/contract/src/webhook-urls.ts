import type { z } from 'zod'
import type { FieldReason } from './errors.ts'

export const maxWebhookUrlLength = 2048

/**
 * Visible ASCII, without a user name or a fragment, and without what the URL parser silently changes: backslashes and an empty
 * host.
 */
export const webhookUrlPattern = '^[Hh][Tt][Tt][Pp][Ss]?://[!"$-.0->A-\\[\\]-~]+([/?][!"$-\\[\\]-~]*)?$'
const plainUrl = new RegExp(webhookUrlPattern)

/**
 * What is wrong with the URL of a webhook; null if it is valid. Whether its address is allowed depends on the configuration of
 * core and couriers.
 */
export function webhookUrlFault(text: string): FieldReason | null {
  if (plainUrl.test(text)) {
    const url = URL.parse(text)
    if (!url) return 'NOT_A_URL'
    return url.port === '0' ? 'PORT_NOT_ALLOWED' : null
  }
  const [, , authority = ''] = text.split(/[/?#]/)
  if (!/^https?:\/\/[!-~]+$/i.test(text) || text.includes('\\')) return 'NOT_A_URL'
  if (authority.includes('@')) return 'HAS_CREDENTIALS'
  return text.includes('#') && authority !== '' ? 'HAS_FRAGMENT' : 'NOT_A_URL'
}

/** The check of a schema. Its message is a FieldReason. */
export function checkWebhookUrl(context: z.core.ParsePayload<string>): void {
  // Its length is another fault.
  if (context.value.length > maxWebhookUrlLength) return
  const reason = webhookUrlFault(context.value)
  if (reason) context.issues.push({ code: 'custom', message: reason, input: context.value })
}
