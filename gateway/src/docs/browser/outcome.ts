import { codeBlock, element, folded, withLineEnds } from './elements.ts'
import type { Exchange } from './exchange.ts'

/** The answer and the request, for the reader. */
export function outcomeOf(exchange: Exchange): Node[] {
  const { status, statusText, envelope, milliseconds, text } = exchange
  const isSuccess = envelope?.success === true
  const code = envelope && !isSuccess ? ` ${envelope.code} ${envelope.message}` : ''
  const line = element(
    'p',
    { class: isSuccess ? 'verdict good' : 'verdict bad' },
    element('strong', {}, `${status} ${statusText}`.trim() + code),
    ` in ${milliseconds} ms`,
  )
  const detail = envelope?.detail ? [element('p', { class: 'detail' }, envelope.detail)] : []
  return [
    line,
    ...detail,
    codeBlock(pretty(text)),
    folded('Headers of the answer', codeBlock(lines([...exchange.headers]))),
    folded('What was sent', ...sentParts(exchange)),
  ]
}

/** A problem that prevented an answer. */
export function problem(sentence: string): Node {
  return element('p', { class: 'verdict bad' }, sentence)
}

function sentParts({ method, target, sentHeaders, body, canonicalMessage }: Exchange): Node[] {
  const request = `${method} ${target}\n${lines(Object.entries(sentHeaders))}${body === undefined ? '' : `\n\n${body}`}`
  return [
    element('h5', {}, 'Request'),
    codeBlock(request),
    element('h5', {}, 'Canonical message'),
    codeBlock(...withLineEnds(canonicalMessage)),
    element('p', { class: 'hint' }, 'X-Signature is the Base64 of the HMAC-SHA256 of this message. ↵ is a line feed.'),
  ]
}

function lines(headers: [string, string][]): string {
  return headers.map(([name, value]) => `${name}: ${value}`).join('\n')
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
