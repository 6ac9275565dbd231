import { codeBlock, element, folded, jsonBlock, withLineEnds } from './elements.ts'
import type { Envelope, Exchange } from './exchange.ts'

/** The response and the request, for the reader. */
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
  return [
    line,
    ...(envelope?.code === 'GA2012' ? wrongSecret(text) : answerParts(envelope, text)),
    folded('Headers of the answer', codeBlock(lines([...exchange.headers]))),
    folded('What was sent', ...sentParts(exchange)),
  ]
}

function answerParts(envelope: Envelope | undefined, text: string): Node[] {
  const detail = envelope?.detail ? [element('p', { class: 'detail' }, envelope.detail)] : []
  return [...detail, jsonBlock(pretty(text))]
}

/** This page signs correctly, so nothing else can be wrong. The sentence of the server is for other clients. */
function wrongSecret(text: string): Node[] {
  const debuggerLink = element('a', { href: '/docs/signature' }, 'signature debugger')
  return [
    element('p', { class: 'detail' }, wrongSecretSentence),
    element('p', {}, 'For a mistake in your own client, use the ', debuggerLink, '.'),
    folded('The answer', jsonBlock(pretty(text))),
  ]
}

export const wrongSecretSentence = 'This is not the secret of this key. After npm start, both are in .data/demo.json.'

/** A problem that prevented a response. */
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
