/** A webhook for each workspace, and the receiver of their events. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Tenant, Traffic } from './traffic.ts'

const pollMs = 100
/** Leases of a courier that was killed end after 60 s, and a delivery to a frozen one after 15 s. */
const patienceMs = 120_000

export class Deliveries {
  /** Events that have arrived, and requests, which repeat some of them. */
  events = 0
  requests = 0
  readonly #server: Server
  /** By workspace: the events in order of their first arrival. */
  readonly #eventIds = new Map<string, Set<string>>()
  /** By workspace: the position after which its webhook begins. */
  readonly #begins = new Map<string, number>()

  constructor() {
    this.#server = createServer((request, response) => {
      request.resume().on('end', () => {
        this.requests++
        this.#eventIdsOf(request.url!.slice(1)).add(String(request.headers['webhook-id']))
        response.writeHead(204).end()
      })
    })
  }

  async start(): Promise<void> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
  }

  /** Creates a webhook that delivers in order. @throws Error if it is refused */
  async subscribe(traffic: Traffic, { workspaceId, signers }: Tenant): Promise<void> {
    const { port } = this.#server.address() as AddressInfo
    const webhook = { url: `http://127.0.0.1:${port}/${workspaceId}`, bizId: 'chaos' }
    const answer = await traffic.settle(signers[0]!, 'POST', '/api/v1/webhook/command/create', webhook)
    if (answer.kind !== 'answer' || answer.code !== '2000') throw new Error(`no webhook: ${JSON.stringify(answer)}`)
    this.#begins.set(workspaceId, (answer.data as { position: number }).position)
  }

  /**
   * Waits until as many events have arrived as were logged. Returns what is wrong with them.
   *
   * @param log all events of the workspace, in order of position
   */
  async compare({ workspaceId }: Tenant, log: readonly string[]): Promise<string[]> {
    const logged = log.slice(this.#begins.get(workspaceId))
    const received = this.#eventIdsOf(workspaceId)
    let size = -1
    for (let since = performance.now(); received.size < logged.length && performance.now() - since < patienceMs; ) {
      if (received.size > size) since = performance.now()
      size = received.size
      await sleep(pollMs)
    }
    const arrived = [...received]
    this.events += arrived.length
    const at = arrived.findIndex((eventId, place) => logged[place] !== eventId)
    if (arrived.length !== logged.length)
      return [`${workspaceId} logged ${logged.length} events of its webhook, and ${arrived.length} were delivered`]
    return at < 0 ? [] : [`the webhook of ${workspaceId} got ${arrived[at]} instead of ${logged[at]}`]
  }

  stop(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  #eventIdsOf(workspaceId: string): Set<string> {
    const found = this.#eventIds.get(workspaceId) ?? new Set()
    this.#eventIds.set(workspaceId, found)
    return found
  }
}
