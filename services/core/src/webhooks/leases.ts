import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import {
  type Delivery,
  type Event,
  idFromUuid,
  type LeasedWebhook,
  leaseMs,
  maxDeliveries,
  maxLeaseLength,
  type Uuid,
  uuidFromId,
} from '@workspace-wallet/contract'
import type { KeyRing, Log, SampledLog } from '@workspace-wallet/runtime'
import type { Pool } from 'pg'
import { databaseTime } from '../database/clock.ts'
import { classifyDatabaseError, isLockTimeout } from '../database/errors.ts'
import type { Em } from '../database/orm.ts'
import { isGenuine } from '../database/row-signer.ts'
import { type BuiltEvent, type EventReader, webhookWaitMs } from '../events/event-reader.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { DueWebhooks } from './due-webhooks.ts'
import { Webhook } from './entities.ts'
import { type EmptyLease, endLeases, lockDueWebhooks } from './queries.ts'
import { secretsOf, signatureHeaders } from './secrets.ts'

/**
 * Lines about webhooks that cannot be delivered. `known`: webhooks whose rows this core has seen to be genuine. The others are separate, so
 * that lines about forged rows do not crowd these out.
 */
export type WebhookLogs = { known: SampledLog; others: SampledLog }
type Logging = { log: Log; webhookLogs: WebhookLogs; dueWebhooks: DueWebhooks }
type Signing = Logging & { keyRing: KeyRing; metrics: Metrics; reads: Pool }
type InTransaction = <Result>(action: (em: Em) => Promise<Result>) => Promise<Result>

/** A leased webhook whose events are not read yet. */
type Lease = Omit<LeasedWebhook, 'deliveries'> & {
  types: Event['type'][]
  position: number
  secrets: string[]
  leasedAt: Date
}

/** How long a webhook whose row was modified, or whose secret does not decrypt, waits until it is checked again. */
const modifiedPauseMs = 3600_000
const undecryptablePauseMs = 60_000

/**
 * Leases up to `size` webhooks that have events to deliver. No other call leases them until their lease ends. A webhook whose
 * row was modified outside the service, or whose secret does not decrypt, is never leased. Whatever rows contain, and however many of
 * them were not written by the service, the others are leased.
 *
 * @param except if it is not null, workspaces to leave out; each other one gets at most one lease
 */
export async function leaseDue(
  signing: Signing,
  inTransaction: InTransaction,
  size: number,
  except: readonly Uuid<'workspace'>[] | null,
): Promise<Lease[]> {
  const leases: Lease[] = []
  const taking = { signing, inTransaction, leases, size }
  const search = signing.dueWebhooks.search(signing.log, {
    wanted: () => size - leases.length,
    except: () => ({
      webhooks: [...setAside],
      workspaces: except && [...except, ...leases.map(({ workspaceId }) => uuidFromId('workspace', workspaceId)!)],
    }),
    take: (due, untilMs) => takeLeases(taking, due, untilMs),
  })
  await search.catch(error => {
    // What is leased already must reach the courier: nobody else gets it until its lease ends.
    if (leases.length === 0) throw error
    signing.log.warn({ err: error }, 'a search for due webhooks failed; those leased so far are delivered')
  })
  return leases
}

type Taking = { signing: Signing; inTransaction: InTransaction; leases: Lease[]; size: number }
type Taken = { leases: Lease[]; damaged: number }

/**
 * Adds leases of these webhooks, until there are `size`. They are leased in one transaction, or, if one of them makes it fail, each in a
 * transaction of its own, until a time by `performance.now()`.
 */
async function takeLeases(
  { signing, inTransaction, leases, size }: Taking,
  due: readonly Uuid<'webhook'>[],
  untilMs: number,
): Promise<{ damaged: number }> {
  async function take(uuids: readonly Uuid<'webhook'>[]): Promise<number> {
    const taken = await inTransaction(em => takeLocked(em, signing, uuids, size - leases.length))
    leases.push(...taken.leases)
    return taken.damaged
  }

  try {
    return { damaged: await take(due) }
  } catch (error) {
    // Locked webhooks are skipped, so that this usually means that a workspace has just begun to leave.
    if (classifyDatabaseError(error) !== 'other' && !isLockTimeout(error)) throw error
  }
  let damaged = 0
  for (const uuid of due) {
    if (leases.length >= size || performance.now() >= untilMs) break
    try {
      damaged += await take([uuid])
    } catch (error) {
      if (isLockTimeout(error)) continue
      if (classifyDatabaseError(error) !== 'other') throw error
      const webhookId = idFromUuid('webhook', uuid)
      const message = 'a webhook cannot be leased: run ledger verify, and delete it'
      logWebhook(signing, 'error', { err: error, webhookId }, message)
      putAside(uuid)
      damaged += 1
    }
  }
  return { damaged }
}

/** Webhooks whose rows this core can neither lease nor make wait. */
const setAside = new Set<Uuid<'webhook'>>()
const maxSetAside = 1000
const setAsideMs = 60_000

function putAside(uuid: Uuid<'webhook'>): void {
  if (setAside.size >= maxSetAside) return
  setAside.add(uuid)
  void setTimeout(setAsideMs, null, { ref: false }).then(() => setAside.delete(uuid))
}

/** Leases those of these webhooks that are still due. Damaged ones have to wait. */
async function takeLocked(em: Em, signing: Signing, due: readonly Uuid<'webhook'>[], size: number): Promise<Taken> {
  const uuids = await lockDueWebhooks(em, due, size)
  const webhooks = await em.find(Webhook, { id: { $in: uuids.map(uuid => idFromUuid('webhook', uuid)) } })
  const now = await databaseTime(em)
  const leases: Lease[] = []
  for (const webhook of webhooks) {
    const secrets = usableSecrets(webhook, signing, now)
    if (!secrets) {
      const pauseMs = isGenuine(webhook) ? undecryptablePauseMs : modifiedPauseMs
      webhook.nextAttemptAt = new Date(now.getTime() + pauseMs)
      // Perhaps a time that core did not set, so that it would be due again at once.
      webhook.leasedUntil = now
      continue
    }
    signing.dueWebhooks.known.remember(uuidFromId('webhook', webhook.id)!)
    webhook.generation = webhook.leasedGeneration = randomUUID()
    webhook.leasedUntil = new Date(now.getTime() + leaseMs)
    // A time that core did not set.
    if (webhook.nextAttemptAt > now) webhook.nextAttemptAt = now
    const { id: webhookId, workspaceId, generation, url, concurrency, types, position } = webhook
    const leased = { webhookId, workspaceId, generation, url, concurrency, leaseMs }
    leases.push({ ...leased, types, position, secrets, leasedAt: now })
  }
  return { leases, damaged: webhooks.length - leases.length }
}

/** The secrets of a webhook; null if its row or a secret is damaged, which is logged. */
function usableSecrets(webhook: Webhook, signing: Signing, now: Date): string[] | null {
  const { id: webhookId, workspaceId } = webhook
  if (!isGenuine(webhook)) {
    signing.metrics.modifiedRow('webhook')
    signing.dueWebhooks.known.noteModified(uuidFromId('webhook', webhookId)!)
    const message = 'a webhook was modified outside the service: delete it, run ledger verify'
    logWebhook(signing, 'error', { webhookId, workspaceId }, message)
    return null
  }
  try {
    return secretsOf(signing.keyRing, webhook, now)
  } catch (error) {
    const message = 'the secret of a webhook does not decrypt: rotate it'
    logWebhook(signing, 'error', { err: error, webhookId, workspaceId }, message)
    return null
  }
}

/** Sampled: whoever has the password of the service's role could keep forged rows due, and flood the log. */
function logWebhook(
  { webhookLogs, dueWebhooks }: Logging,
  level: 'error' | 'warn',
  fields: { webhookId: string; workspaceId?: string; err?: unknown },
  message: string,
): void {
  const isKnown = dueWebhooks.known.has(uuidFromId('webhook', fields.webhookId)!)
  const webhookLog = isKnown ? webhookLogs.known : webhookLogs.others
  webhookLog.write(`${message} ${fields.workspaceId ?? fields.webhookId}`, {
    level,
    fields,
    message,
  })
}

type Reading = Logging & { events: EventReader; reads: Pool }

/**
 * Reads and signs the events of leased webhooks. If none of the events has a type that a webhook wants, its position passes
 * them, and its lease ends at once. So does a lease whose events cannot be read.
 *
 * @returns the webhooks with deliveries
 */
export async function readDeliveries(core: Reading, leases: readonly Lease[]): Promise<LeasedWebhook[]> {
  if (leases.length === 0) return []
  const maxLength = maxLeaseLength / leases.length
  // All other deliveries of the call would wait for them.
  const late = setTimeout(webhookWaitMs, null, { ref: false })
  const read = await Promise.all(leases.map(lease => readLease(core, lease, { maxLength, late })))
  const empty = read.flatMap(each => ('deliveries' in each ? [] : [each]))
  // These leases also end by themselves. The others must reach their courier.
  await endLeases(core.reads, empty).catch(error => core.log.warn({ err: error }, 'leases could not be ended'))
  return read.flatMap(each => ('deliveries' in each ? [each] : []))
}

/** @param late resolves when this lease is no longer waited for */
async function readLease(
  core: Reading,
  { types, position, secrets, leasedAt, ...leased }: Lease,
  { maxLength, late }: { maxLength: number; late: Promise<null> },
): Promise<LeasedWebhook | EmptyLease> {
  const { webhookId, workspaceId, generation } = leased
  try {
    const page = core.events.readForWebhook(workspaceId, { after: position, size: maxDeliveries, types })
    const read = await Promise.race([page, late])
    if (!read) throw new Error(`they were not read in ${webhookWaitMs} ms`)
    const deliveries = deliveriesOf(read.events, { secrets, leasedAt, maxLength })
    return deliveries.length > 0 ? { ...leased, deliveries } : { webhookId, generation, position: read.last }
  } catch (error) {
    const message = 'the events of a webhook could not be read'
    logWebhook(core, 'warn', { err: error, webhookId, workspaceId }, message)
    return { webhookId, generation, position: null }
  }
}

/** At least the first event, and as many of the following ones as fit. */
function deliveriesOf(
  events: readonly BuiltEvent[],
  { secrets, leasedAt, maxLength }: { secrets: string[]; leasedAt: Date; maxLength: number },
): Delivery[] {
  const deliveries: Delivery[] = []
  let length = 0
  for (const { eventId, position, text: body } of events) {
    length += body.length
    if (deliveries.length > 0 && length > maxLength) break
    deliveries.push({ position, body, headers: signatureHeaders(secrets, { eventId, body, at: leasedAt }) })
  }
  return deliveries
}
