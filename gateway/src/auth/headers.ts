import type { IncomingMessage } from 'node:http'

/** The text of a header, or '' if it is missing. A header that was sent twice is joined by a comma and a space. */
export function header(request: IncomingMessage, lowerCaseName: string): string {
  return (request.headers[lowerCaseName] as string | undefined) ?? ''
}

/** Why a header of section 5.1 failed its check. */
export function headerFault(request: IncomingMessage, header: string): 'MISSING' | 'REPEATED' | 'MALFORMED' {
  const values = request.headersDistinct[header.toLowerCase()] ?? []
  if (values.length > 1) return 'REPEATED'
  return values.length === 0 || values[0] === '' ? 'MISSING' : 'MALFORMED'
}
