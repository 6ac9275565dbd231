import type { KeyObject } from 'node:crypto'
import {
  DomainError,
  type Event,
  type EventPage,
  idFromUuid,
  type ReadEventsInput,
  type Uuid,
  uuidFromId,
} from '@workspace-wallet/contract'
import type { ListDatabase } from '../database/lists/list-reader.ts'
import { inTurns } from '../database/turns.ts'
import { WorkspaceConcurrencyLimit } from '../database/workspace-concurrency-limit.ts'
import { type Halting, haltIfModified } from '../ledger/store/halt.ts'
import { PageChecks } from './page-checks.ts'
import { readStoredPage } from './queries.ts'
import { toEvent } from './records.ts'

type Parts = Halting & { lists: ListDatabase; chainKey: KeyObject }
type PageRequest = Pick<ReadEventsInput, 'after' | 'size' | 'types'>

/** An event as JSON text, which is what webhooks deliver and what the API answers. */
export type BuiltEvent = Pick<Event, 'eventId' | 'position' | 'type'> & { text: string }
export type BuiltPage = Omit<EventPage, 'content'> & { events: BuiltEvent[] }

/** Two pages at a time would make a tenth more of them, and double the time of a transfer meanwhile. */
const onePage = {
  slots: 1,
  reservedSlots: 0,
  waitingPerWorkspace: 64,
  waiting: 1024,
  reason: 'TOO_MANY_LISTS',
} as const
/** How long a page of the API and one of a webhook wait. */
const waitMs = 5_000
export const webhookWaitMs = 1_000

/**
 * Reads pages of the event log, for the API and for webhooks. It answers only what the service wrote: it checks the MAC of every
 * row that it shows, each of which covers the one before. A page with any other row is not answered, and halts its workspace.
 *
 * One page of the API and one of webhooks are read at a time, and workspaces take turns. A page is built in several turns of the event
 * loop, so that it delays no other call.
 */
export class EventReader {
  readonly #core: Parts
  /** Of the API and of webhooks: neither can keep the other waiting. */
  readonly #pages = new WorkspaceConcurrencyLimit({ ...onePage, waitMs })
  readonly #webhookPages = new WorkspaceConcurrencyLimit({ ...onePage, waitMs: webhookWaitMs })

  constructor(core: Parts) {
    this.#core = core
  }

  /** The running and waiting pages. */
  get load() {
    const [api, webhooks] = [this.#pages.load, this.#webhookPages.load]
    return { running: api.running + webhooks.running, waiting: api.waiting + webhooks.waiting }
  }

  /**
   * The events of a workspace after a position, in order of position. Without `types`: of all types. A page costs the same at any
   * position.
   *
   * @throws DomainError GA2032; E001 if the log ends before `after`; S002 if too many pages wait, or if the page has a row that was
   *   written outside the service
   */
  read(workspaceId: string, request: PageRequest): Promise<BuiltPage> {
    return this.#readWithin(this.#pages, workspaceId, request)
  }

  /** As `read`, for a webhook. S002 if it waits for `webhookWaitMs`. */
  readForWebhook(workspaceId: string, request: PageRequest): Promise<BuiltPage> {
    return this.#readWithin(this.#webhookPages, workspaceId, request)
  }

  async #readWithin(pages: WorkspaceConcurrencyLimit, workspaceId: string, request: PageRequest): Promise<BuiltPage> {
    const workspace = uuidFromId('workspace', workspaceId)
    if (!workspace) throw new DomainError('GA2032')
    return haltIfModified(this.#core, () => pages.run(workspace, () => this.#readPage(workspace, request)))
  }

  async #readPage(workspace: Uuid<'workspace'>, request: PageRequest): Promise<BuiltPage> {
    const { after, types } = request
    const { lists, chainKey } = this.#core
    const page = await readStoredPage(lists, workspace, request)
    if (!page) throw new DomainError('GA2032')
    const { info } = page
    const checks = new PageChecks(chainKey, workspace, page, types.length > 0)
    checks.requireLedger()
    const head = info.ledger.position
    if (info.after > head) throw new DomainError('E001', { position: head })
    checks.requirePositions()
    const workspaceId = idFromUuid('workspace', workspace)
    const built: BuiltEvent[] = []
    await inTurns(page.events, stored => {
      checks.require(stored)
      const event = toEvent(workspaceId, stored)
      const { eventId, position, type } = event
      built.push({ eventId, position, type, text: JSON.stringify(event) })
    })
    const isWanted = ({ position, type }: BuiltEvent) =>
      position > info.after && (types.length === 0 || types.includes(type))
    const idAt = (end: number) => built.find(({ position }) => position === end)?.eventId ?? null
    return {
      events: built.filter(isWanted),
      after: info.after,
      afterEventId: after === 'head' ? null : idAt(info.after),
      types,
      last: info.last,
      lastEventId: idAt(info.last),
      more: info.last < head,
    }
  }
}
