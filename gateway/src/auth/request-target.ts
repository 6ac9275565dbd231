import type { IncomingMessage } from 'node:http'

/** Path and query of a request target as sent, percent-encoding untouched. */
export type RequestTarget = { path: string; query: string }

/** Splits a request target at its `?`; of an absolute-form one (`http://host/path`) scheme and authority go first. */
export function parseRequestTarget(url: string): RequestTarget {
  const origin = url.startsWith('/') ? url : url.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '')
  const mark = origin.indexOf('?')
  const path = mark < 0 ? origin : origin.slice(0, mark)
  return { path: path === '' ? '/' : path, query: mark < 0 ? '' : origin.slice(mark + 1) }
}

/** Why a header of section 5.1 cannot be used. Looked up only once it has failed its check. */
export function headerFault(request: IncomingMessage, header: string): 'MISSING' | 'REPEATED' | 'MALFORMED' {
  const values = request.headersDistinct[header.toLowerCase()] ?? []
  if (values.length > 1) return 'REPEATED'
  return values.length === 0 || values[0] === '' ? 'MISSING' : 'MALFORMED'
}

/** The text of a header. A header that was sent twice arrives joined by a comma and a space. */
export function header(request: IncomingMessage, lowerCaseName: string): string {
  return (request.headers[lowerCaseName] as string | undefined) ?? ''
}
