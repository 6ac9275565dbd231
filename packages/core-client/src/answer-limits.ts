import type { MessagePackLimits } from '@workspace-wallet/runtime/count-in-message-pack'

/** What the answers to a batch may have at most: their size, and the values in them, keys included. */
export type AnswerLimits = { bytes: number; values: number }

/**
 * Neither a core that was taken over nor another server can use up the memory of its client: a decoded value takes up to 200 bytes. The
 * largest answers of core are pages of 500 audit entries that each change the 256 addresses of an API key.
 */
export const defaultAnswerLimits: AnswerLimits = { bytes: 16 * 1024 * 1024, values: 327_680 }
/** A rejection is one error. */
export const maxRejectionBytes = 65_536

export function messagePackLimits({ values }: AnswerLimits): MessagePackLimits {
  return { values, depth: 32, records: 4_096, recordKeys: 256, recordKeyBytes: 255 }
}
