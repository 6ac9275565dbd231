import { verifyWebhook, type WalletClient } from '@workspace-wallet/client'
import type { Books } from './books.ts'
import type { Database } from './database.ts'

/**
 * Receives events: a webhook delivers each one within a moment. If one is missing, because the shop was not running or because
 * events overtook one another, the shop reads the event log from its cursor.
 */
export class WalletEvents {
  readonly #database: Database
  readonly #client: WalletClient
  readonly #books: Books

  constructor(database: Database, client: WalletClient, books: Books) {
    this.#database = database
    this.#client = client
    this.#books = books
  }

  /** @throws WebhookVerificationError if the service did not send it */
  async receive(headers: Record<string, string | string[] | undefined>, body: Uint8Array): Promise<void> {
    const event = await verifyWebhook({ secret: this.#secret ?? [], headers, body })
    if (!this.#books.add(event)) await this.catchUp()
  }

  /** Books the events after the cursor. @throws HistoryReplacedError if the service was restored from an earlier copy */
  async catchUp(): Promise<void> {
    for await (const { content } of this.#client.events.follow({ ...this.#books.cursor, untilEnd: true }))
      for (const event of content) this.#books.add(event)
  }

  /** Creates the webhook, or lets it continue after the cursor without waiting for its next attempt. */
  async connect(url: string): Promise<void> {
    const { webhooks } = this.#client
    const all = await Array.fromAsync(webhooks.listAll())
    let webhookId = all.find(({ bizId }) => bizId === 'shop')?.webhookId
    if (webhookId === undefined) {
      const created = await webhooks.create({ bizId: 'shop', url })
      webhookId = created.webhookId
      if (created.secret !== null) this.#store(created.secret)
    }
    // The shop stopped before it stored the secret, or its database is new.
    if (!this.#secret) this.#store((await webhooks.rotate(webhookId)).secret)
    await webhooks.update(webhookId, { url, status: 'ACTIVE' })
    await webhooks.seek(webhookId, this.#books.cursor.after)
  }

  get #secret(): string | undefined {
    return this.#database.first(`select value from setting where name = 'webhook-secret'`)?.value as string | undefined
  }

  #store(secret: string): void {
    this.#database.run(`insert or replace into setting (name, value) values ('webhook-secret', ?)`, secret)
  }
}
