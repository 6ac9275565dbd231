import { setTimeout } from 'node:timers/promises'
import {
  type Delivery,
  type Event,
  eventRecord,
  idFromUuid,
  type LeasedWebhook,
  leaseMs,
  maxDeliveries,
  maxLeaseLength,
} from '@workspace-wallet/contract'
import type { KeyRing, Log } from '@workspace-wallet/runtime'
import type { Pool } from 'pg'
import { databaseTime } from '../database/clock.ts'
import type { ListDatabase } from '../database/lists/list-reader.ts'
import type { Em } from '../database/orm.ts'
import { isGenuine } from '../database/row-signer.ts'
import { readEvents } from '../events/queries.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { Webhook } from './entities.ts'
import { type EmptyLease, endLeases, lockDueWebhooks } from './queries.ts'
import { secretsOf, signatureHeaders } from './secrets.ts'

type Signing = { keyRing: KeyRing; log: Log; metrics: Metrics }

/** A leased webhook whose events are not read yet. */
type Lease = Omit<LeasedWebhook, 'deliveries'> & {
  types: Event['type'][]
  position: number
  secrets: string[]
  leasedAt: Date
}

/** How long after a webhook was found to be damaged it is checked again. */
const damagedRetryMs = 60_000

/**
 * Leases up to `size` webhooks that have events to deliver, in a transaction. No other call leases them until their lease
 * ends. A webhook whose row was modified outside the service, or whose secret does not decrypt, is never leased.
 */
export async function takeLeases(em: Em, signing: Signing, size: number): Promise<Lease[]> {
  const ids = (await lockDueWebhooks(em, size)).map(uuid => idFromUuid('webhook', uuid))
  const webhooks = await em.find(Webhook, { id: { $in: ids } })
  const now = await databaseTime(em)
  const leases: Lease[] = []
  for (const webhook of webhooks) {
    const secrets = usableSecrets(webhook, signing, now)
    if (!secrets) {
      webhook.nextAttemptAt = new Date(now.getTime() + damagedRetryMs)
      continue
    }
    webhook.generation += 1
    webhook.leasedGeneration = webhook.generation
    webhook.leasedUntil = new Date(now.getTime() + leaseMs)
    const { id: webhookId, workspaceId, generation, url, concurrency, types, position } = webhook
    const leased = { webhookId, workspaceId, generation, url, concurrency, leaseMs }
    leases.push({ ...leased, types, position, secrets, leasedAt: now })
  }
  return leases
}

/** The secrets of a webhook; null if its row or a secret is damaged, which is logged. */
function usableSecrets(webhook: Webhook, { keyRing, log, metrics }: Signing, now: Date): string[] | null {
  const { id: webhookId, workspaceId } = webhook
  if (!isGenuine(webhook)) {
    metrics.modifiedRow('webhook')
    log.error({ webhookId, workspaceId }, 'a webhook was modified outside the service: delete it, run ledger verify')
    return null
  }
  try {
    return secretsOf(keyRing, webhook, now)
  } catch (error) {
    log.error({ err: error, webhookId, workspaceId }, 'the secret of a webhook does not decrypt: rotate it')
    return null
  }
}

/** A lease is not given if its events take longer to read: all other deliveries of the call would wait for it. */
const readMs = 1_000

type Reading = { lists: ListDatabase; reads: Pool; log: Log }

/**
 * Reads and signs the events of leased webhooks. If none of the events has a type that a webhook wants, its position passes
 * them, and its lease ends at once. So does a lease whose events cannot be read.
 *
 * @returns the webhooks with deliveries
 */
export async function readDeliveries(core: Reading, leases: readonly Lease[]): Promise<LeasedWebhook[]> {
  if (leases.length === 0) return []
  const maxLength = maxLeaseLength / leases.length
  const late = setTimeout(readMs, null, { ref: false })
  const read = await Promise.all(leases.map(lease => readLease(core, lease, { maxLength, late })))
  const empty = read.flatMap(each => ('deliveries' in each ? [] : [each]))
  // These leases also end by themselves. The others must reach their courier.
  await endLeases(core.reads, empty).catch(error => core.log.warn({ err: error }, 'leases could not be ended'))
  return read.flatMap(each => ('deliveries' in each ? [each] : []))
}

/** @param late resolves when this lease is no longer waited for */
async function readLease(
  { lists, log }: Reading,
  { types, position, secrets, leasedAt, ...leased }: Lease,
  { maxLength, late }: { maxLength: number; late: Promise<null> },
): Promise<LeasedWebhook | EmptyLease> {
  const { webhookId, workspaceId, generation } = leased
  try {
    const page = readEvents(lists, workspaceId, { after: position, size: maxDeliveries, types })
    const read = await Promise.race([page, late])
    if (!read) throw new Error(`they were not read in ${readMs} ms`)
    const deliveries = deliveriesOf(read.content, { secrets, leasedAt, maxLength })
    return deliveries.length > 0 ? { ...leased, deliveries } : { webhookId, generation, position: read.last }
  } catch (error) {
    log.warn({ err: error, webhookId, workspaceId }, 'the events of a webhook could not be read')
    return { webhookId, generation, position: null }
  }
}

/** At least the first event, and as many of the following ones as fit. */
function deliveriesOf(
  events: readonly Event[],
  { secrets, leasedAt, maxLength }: { secrets: string[]; leasedAt: Date; maxLength: number },
): Delivery[] {
  const deliveries: Delivery[] = []
  let length = 0
  for (const event of events) {
    const body = JSON.stringify(eventRecord(event))
    length += body.length
    if (deliveries.length > 0 && length > maxLength) break
    const { eventId, position } = event
    deliveries.push({ position, body, headers: signatureHeaders(secrets, { eventId, body, at: leasedAt }) })
  }
  return deliveries
}
