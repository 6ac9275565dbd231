import { once } from 'node:events'
import { type IncomingHttpHeaders, type IncomingMessage, request as open } from 'node:http'
import { json } from 'node:stream/consumers'
import { type Credentials, type Envelope, type Overrides, signedHeaders } from '../setup/client.ts'

export type Answer = { status: number; headers: IncomingHttpHeaders; body: Envelope }

/** One request. `query` may repeat a name. */
export type Request = {
  method: string
  /** With the names of its parameters: `/api/v1/wallets/{walletId}`. */
  path: string
  params: Record<string, unknown>
  query: [name: string, value: string][]
  /** JSON, or the text itself. */
  body?: unknown
}

export type SendOptions = Overrides & {
  /** Sends the headers of a body that is so long, and waits for the invitation to send it. */
  announcedLength?: number
  /** Without the Host header. */
  hostless?: boolean
}

/** Signs and sends a request as it is. fetch would normalize its path and add headers. */
export async function send(credentials: Credentials, request: Request, options: SendOptions = {}): Promise<Answer> {
  const { method, params, query, body } = request
  const path = request.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(params[name])))
  const target = query.length > 0 ? `${path}?${new URLSearchParams(query)}` : path
  const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
  const { announcedLength, hostless, ...overrides } = options
  const headers = await signedHeaders(credentials, method, target, text, overrides)
  if (announcedLength) Object.assign(headers, { Expect: '100-continue', 'Content-Length': String(announcedLength) })
  else if (text !== undefined) headers['Content-Length'] = String(Buffer.byteLength(text))
  const { hostname, port } = new URL(credentials.baseUrl)
  const outgoing = open({ hostname, port, method, path: target, headers, setHost: !hostless, agent: false })
  if (announcedLength) outgoing.flushHeaders()
  else outgoing.end(text)
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  const answer = (await json(response)) as Envelope
  outgoing.destroy()
  return { status: response.statusCode!, headers: response.headers, body: answer }
}
