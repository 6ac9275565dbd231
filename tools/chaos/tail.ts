/** Readers that follow the event logs of the workspaces, and compare what they see with the rules of the log. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ListedOrder } from './reconcile.ts'
import type { Tenant, Traffic } from './traffic.ts'

type Event = { eventId: string; position: number; type: string; data: { transfer?: { transferId: string } } }
type EventPage = {
  content: Event[]
  afterEventId: string | null
  last: number
  lastEventId: string | null
  more: boolean
}

const pageSize = 500
const pauseMs = 50

export class Tail {
  /** What is wrong with the log. */
  readonly unexplained: string[] = []
  readonly tenant: Tenant
  readonly #traffic: Traffic
  readonly #eventIds = new Set<string>()
  readonly #transferIds: string[] = []
  #last = 0
  #lastEventId: string | null = null
  #isStopping = false
  readonly #done: Promise<void>

  constructor(tenant: Tenant, traffic: Traffic) {
    this.tenant = tenant
    this.#traffic = traffic
    this.#done = this.#follow()
  }

  /** The events that it has seen, in order. */
  get eventIds(): string[] {
    return [...this.#eventIds]
  }

  /** Reads to the end of the log, which must have exactly these orders, the oldest first. */
  async stop(orders: readonly ListedOrder[]): Promise<void> {
    this.#isStopping = true
    await this.#done
    const name = this.tenant.workspaceId
    const listed = orders.map(({ transferId }) => transferId)
    const at = listed.findIndex((transferId, place) => this.#transferIds[place] !== transferId)
    if (listed.length !== this.#transferIds.length)
      this.unexplained.push(`${name} has ${listed.length} orders, and its log ${this.#transferIds.length}`)
    else if (at >= 0) this.unexplained.push(`the log of ${name} has ${this.#transferIds[at]} instead of ${listed[at]}`)
  }

  async #follow(): Promise<void> {
    for (;;) {
      // The last page is one that was asked for after `stop`.
      const isLast = this.#isStopping
      const target = `/api/v1/event/query/events/${this.#last}?size=${pageSize}`
      const answer = await this.#traffic.settle(this.tenant.signers[0]!, 'GET', target)
      if (answer.kind === 'answer' && answer.code === '2000') {
        const page = answer.data as unknown as EventPage
        this.#check(page)
        if (isLast && !page.more) return
        if (!page.more) await sleep(pauseMs)
      } else if (answer.kind === 'answer' && answer.code !== 'S002') {
        this.unexplained.push(`${target} of ${this.tenant.workspaceId} was answered with ${answer.code}`)
        return
      }
    }
  }

  #check({ content, afterEventId, last, lastEventId }: EventPage): void {
    const name = this.tenant.workspaceId
    if (afterEventId !== this.#lastEventId)
      this.unexplained.push(`position ${this.#last} of ${name} was ${this.#lastEventId} and is ${afterEventId}`)
    for (const { eventId, position, data } of content) {
      if (position !== this.#last + 1) this.unexplained.push(`position ${position} of ${name} follows ${this.#last}`)
      if (this.#eventIds.has(eventId)) this.unexplained.push(`${eventId} of ${name} was seen twice`)
      this.#eventIds.add(eventId)
      if (data.transfer) this.#transferIds.push(data.transfer.transferId)
      this.#last = position
      this.#lastEventId = eventId
    }
    if (last !== this.#last || lastEventId !== this.#lastEventId)
      this.unexplained.push(`a page of ${name} ends at ${last}, ${lastEventId}, and its last event is ${this.#last}`)
    this.#last = last
    this.#lastEventId = lastEventId
  }
}
