import type { z } from 'zod'
import type { FieldReason } from './errors.ts'

export const maxUrlLength = 2048

/**
 * Visible ASCII without what the URL parser changes or skips without an error: backslashes, an empty host. Also without user
 * name and fragment.
 */
export const urlPattern = '^[Hh][Tt][Tt][Pp][Ss]?://[!"$-.0->A-\\[\\]-~]+([/?][!"$-\\[\\]-~]*)?$'
const plainUrl = new RegExp(urlPattern)

/**
 * What is wrong with the URL of a webhook; null if nothing is. Whether its address is allowed depends on the configuration
 * of core and courier.
 */
export function webhookUrlFault(text: string): FieldReason | null {
  if (plainUrl.test(text)) return URL.canParse(text) ? null : 'NOT_A_URL'
  const [, , authority = ''] = text.split(/[/?#]/)
  if (!/^https?:\/\/[!-~]+$/i.test(text) || text.includes('\\')) return 'NOT_A_URL'
  if (authority.includes('@')) return 'HAS_CREDENTIALS'
  return text.includes('#') && authority !== '' ? 'HAS_FRAGMENT' : 'NOT_A_URL'
}

/** The check of a schema. Its message is a FieldReason. */
export function checkWebhookUrl(context: z.core.ParsePayload<string>): void {
  const reason = webhookUrlFault(context.value)
  if (reason) context.issues.push({ code: 'custom', message: reason, input: context.value })
}
