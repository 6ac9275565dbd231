import { type MessagePackLimits, TooManyValues } from './count-in-message-pack.ts'

const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a]
const [openBracket, closeBracket, openBrace, closeBrace] = [0x5b, 0x5d, 0x7b, 0x7d]

/**
 * Counts the values in a JSON text before anything is allocated for them. It does not check the syntax: JSON.parse does.
 *
 * @param text in UTF-8
 * @throws TooManyValues
 */
export function countInJson(text: Uint8Array, limits: Pick<MessagePackLimits, 'values' | 'depth'>): number {
  let values = 1
  let depth = 0
  let isInString = false
  for (let at = 0; at < text.length; at++) {
    const byte = text[at]
    if (isInString) {
      if (byte === backslash) at++
      else if (byte === quote) isInString = false
    } else if (byte === quote) isInString = true
    else if (byte === comma || byte === colon) values++
    else if (byte === openBracket || byte === openBrace) {
      values++
      depth++
    } else if (byte === closeBracket || byte === closeBrace) depth--
    if (values > limits.values || depth > limits.depth) throw new TooManyValues()
  }
  return values
}
