import { z } from 'zod'
import { type IdKind, idPrefixes, looksLikeId } from './ids.ts'

const bizIdLength = 64
const bizIdPattern = /^[A-Za-z0-9][A-Za-z0-9._:-]*$/

/** Whether a text has the form of a bizId. Nothing has another one. */
export function isBizId(text: string): boolean {
  return text.length <= bizIdLength && bizIdPattern.test(text)
}

/**
 * The idempotency key of a command, chosen by the client and unique in a workspace for ever: among its transfers of every
 * kind, its holds, its wallets, or its webhooks. It cannot have the form of an ID where a path or a field can name the object by either.
 */
function bizIdExcept({ words, kinds }: { words: string[]; kinds: IdKind[] }) {
  const prefixes = kinds.map(kind => [...idPrefixes[kind]].map(letter => `[${letter}${letter.toUpperCase()}]`).join(''))
  const reserved = [...words, `(${prefixes.join('|')})_[0-9A-Za-z]*`].join('|')
  const forms = [...words, ...kinds.map(kind => `${idPrefixes[kind]}_…`)]
  return z
    .string('NOT_A_STRING')
    .min(1, 'EMPTY')
    .max(bizIdLength, 'TOO_LONG')
    .regex(bizIdPattern, 'NOT_A_BIZ_ID')
    .refine(text => !words.includes(text) && !looksLikeId(kinds, text), {
      error: 'RESERVED',
      params: { limit: forms.join(', ') },
    })
    .describe(
      `Your own ID, which makes the call safe to repeat: however often you send it, it takes effect once. Use each bizId for one thing only. 1 to ${bizIdLength} of \`A-Z a-z 0-9 . _ : -\`, beginning with a letter or digit. Reserved, and not allowed: ${forms.map(form => `\`${form}\``).join(', ')}.`,
    )
    .meta({ not: { pattern: `^(${reserved})$` } })
}

/** Of transfers, deposits and withdrawals. Events and holds of other systems may name them. */
export const transferBizId = bizIdExcept({
  words: ['wallet'],
  kinds: ['workspace', 'apiKey', 'wallet', 'transfer', 'flow'],
})
export const holdBizId = bizIdExcept({ words: [], kinds: ['hold'] })
export const walletBizId = bizIdExcept({ words: [], kinds: ['wallet'] })
export const webhookBizId = bizIdExcept({ words: [], kinds: ['webhook'] })
