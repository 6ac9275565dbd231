import { allPages, itemsOf, type Page } from './pages.ts'
import { segment } from './queries.ts'
import type {
  CreateWebhook,
  DeletedWebhook,
  DeleteWebhook,
  IssuedWebhook,
  ListWebhooksQuery,
  RotatedWebhook,
  RotateWebhook,
  SeekWebhook,
  UpdateWebhook,
  Webhook,
} from './records.ts'
import type { CallOptions, Send } from './request.ts'

/** What `update` changes. Fields that are left out do not change. */
export type WebhookChanges = Omit<UpdateWebhook, 'webhookId'>

/**
 * The webhooks of the workspace: URLs to which the service sends events. `verifyWebhook` verifies what arrives there. All
 * methods need the scope `webhook:manage`.
 */
export class Webhooks {
  readonly #send: Send

  constructor(send: Send) {
    this.#send = send
  }

  /** One page of webhooks. */
  async list(query: ListWebhooksQuery = {}, options: CallOptions = {}): Promise<Page<Webhook>> {
    return this.#send('GET', webhooksPath, { ...options, query })
  }

  /** All webhooks, the oldest first. There are at most 16. */
  listAll(query: Omit<ListWebhooksQuery, 'page'> = {}, options: CallOptions = {}): AsyncGenerator<Webhook, void, void> {
    return itemsOf(page => this.list({ ...allPages, ...query, page }, options))
  }

  async get(webhookId: string, options: CallOptions = {}): Promise<Webhook> {
    return this.#send('GET', `${webhooksPath}/${segment(webhookId)}`, options)
  }

  /**
   * Creates a webhook, which gets the events from now on. Store its `secret`, which is returned once. The same bizId with
   * the same terms returns the same webhook, with `secret: null`: if the first response was lost, `rotate` returns another
   * secret.
   */
  create(body: CreateWebhook, options: CallOptions = {}): Promise<IssuedWebhook> {
    return this.#command('create', body, options)
  }

  /** Changes a webhook, pauses it (`status: 'PAUSED'`), or resumes it (`'ACTIVE'`) after the last delivered event. */
  update(webhookId: string, changes: WebhookChanges, options: CallOptions = {}): Promise<Webhook> {
    const body: UpdateWebhook = { webhookId, ...changes }
    return this.#command('update', body, { ...options, isRepeatable: true })
  }

  /**
   * Returns a new secret. For `graceSeconds` (default: a day), deliveries are also signed with the previous one. If the outcome is `UNKNOWN`, rotate again.
   */
  rotate(
    webhookId: string,
    { graceSeconds }: Omit<RotateWebhook, 'webhookId'> = {},
    options: CallOptions = {},
  ): Promise<RotatedWebhook> {
    const body: RotateWebhook = { webhookId, graceSeconds }
    return this.#command('rotate', body, options)
  }

  /** Continues after another position: a lower one sends events again, a higher one skips events. */
  seek(webhookId: string, after: number, options: CallOptions = {}): Promise<Webhook> {
    const body: SeekWebhook = { webhookId, after }
    return this.#command('seek', body, { ...options, isRepeatable: true })
  }

  /** Deletes a webhook. Deleting it again has no effect. */
  delete(webhookId: string, options: CallOptions = {}): Promise<DeletedWebhook> {
    const body: DeleteWebhook = { webhookId }
    return this.#command('delete', body, { ...options, isRepeatable: true })
  }

  async #command<Data>(name: string, body: object, options: CallOptions & { isRepeatable?: boolean }): Promise<Data> {
    return this.#send('POST', `/api/v1/webhook/command/${name}`, { ...options, body })
  }
}

const webhooksPath = '/api/v1/webhook/query/webhooks'
