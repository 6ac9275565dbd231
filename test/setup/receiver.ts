/** The receiver of a webhook: a real HTTP or HTTPS server, which verifies signatures with the library of Standard Webhooks. */
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import https from 'node:https'
import { Webhook as Verifier } from 'standardwebhooks'
import type { Certificate } from './certificates.ts'
import { listen } from './listen.ts'

export type ReceivedEvent = { eventId: string; position: number; type: string; data: { transfer?: { bizId: string } } }
type Answer = number | { status: number; headers: Record<string, string> }
/** The answer to an event. With a promise, the answer comes when it resolves. */
export type Respond = (event: ReceivedEvent, request: IncomingMessage) => Answer | Promise<Answer>

export type Receiver = {
  url: string
  /** Every request with a valid signature, in order of arrival, and its answer once there is one. */
  received: { event: ReceivedEvent; path: string; status: number | null }[]
  /** Requests whose signature, ID or time is wrong. */
  forged: string[]
  /** The secrets of the webhooks that send here. */
  secrets: string[]
  respond: Respond
  /** The greatest number of requests that were in progress at a time. */
  maxInProgress: number
  stop(): Promise<void>
}

export async function startReceiver(respond: Respond = () => 204, certificate?: Certificate): Promise<Receiver> {
  let inProgress = 0

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // The request of a courier that is killed may end before its body does.
    const body = await request.toArray().then(
      chunks => Buffer.concat(chunks).toString(),
      () => null,
    )
    if (body === null) return
    const event = verified(body, request)
    if (!event) {
      receiver.forged.push(body)
      response.writeHead(400).end()
      return
    }
    const entry: Receiver['received'][number] = { event, path: request.url!, status: null }
    receiver.received.push(entry)
    receiver.maxInProgress = Math.max(receiver.maxInProgress, ++inProgress)
    const given = await receiver.respond(event, request)
    inProgress--
    const { status, headers } = typeof given === 'number' ? { status: given, headers: {} } : given
    entry.status = status
    response.writeHead(status, headers).end()
  }

  function verified(body: string, { headers }: IncomingMessage): ReceivedEvent | null {
    for (const secret of receiver.secrets)
      try {
        const event = new Verifier(secret).verify(body, headers as Record<string, string>) as ReceivedEvent
        return event.eventId === headers['webhook-id'] ? event : null
      } catch {}
    return null
  }

  const listener = (request: IncomingMessage, response: ServerResponse) => void answer(request, response)
  const server = certificate ? https.createServer(certificate, listener) : http.createServer(listener)
  server.on('tlsClientError', () => {})
  const port = await listen(server)
  const receiver: Receiver = {
    url: certificate ? `https://localhost:${port}/events` : `http://127.0.0.1:${port}/events`,
    received: [],
    forged: [],
    secrets: [],
    respond,
    maxInProgress: 0,
    async stop() {
      server.close()
      server.closeAllConnections()
    },
  }
  return receiver
}
