import { type KeyObject, randomUUID } from 'node:crypto'
import { LockMode, type OrderDefinition } from '@mikro-orm/core'
import {
  type AuditAction,
  type CreateWebhookInput,
  DomainError,
  defaultWebhookGraceSeconds,
  type Id,
  type IssuedWebhook,
  type ListWebhooksInput,
  maxWebhooks,
  type Page,
  type RotatedWebhook,
  type RotateWebhookInput,
  type SeekWebhookInput,
  type UpdateWebhookInput,
  uuidFromId,
  type Webhook as WebhookRecord,
} from '@workspace-wallet/contract'
import { type AddressBlock, encryptSecret, type KeyRing, type Log, webhookTargetFault } from '@workspace-wallet/runtime'
import { lockWebhooks } from '../access/revision.ts'
import { changerOf, coreActor } from '../audit/actors.ts'
import { recordAction } from '../audit/record.ts'
import { databaseTime } from '../database/clock.ts'
import type { Em } from '../database/orm.ts'
import { isGenuine, replaceRow, requireGenuine } from '../database/row-signer.ts'
import { webhookBizIdMac } from '../database/tables/webhook.ts'
import { idToFind } from '../database/types.ts'
import { Ledger } from '../ledger/rows/entities.ts'
import { isPresent, lockLedger } from '../ledger/rows/lock.ts'
import { Webhook } from './entities.ts'

/** The input of a call, without its caller. */
type Call<Input> = Omit<Input, 'caller'>

/** The ID and the secret of a new webhook, which are generated before the transaction, so that it can be repeated. */
export type NewWebhook = { webhookId: Id<'webhook'>; secret: string }

/**
 * Checks the URL and, if its host is an address, whether that address is allowed. Like the rest of the body, the URL is
 * checked before anything else.
 *
 * @throws DomainError S012
 */
export function requireAllowedUrl(url: string, allowed: readonly AddressBlock[]): void {
  const reason = webhookTargetFault(url, allowed)
  if (reason) throw new DomainError('S012', { field: 'url', reason })
}

/**
 * Creates a webhook, which begins at the end of the log. Idempotent by bizId: a replay, which has the same URL, types and
 * concurrency, returns the webhook as it is now, without its secret.
 *
 * @throws DomainError T005, GA2032, S002 if the ledger is halted, E003
 */
export async function createWebhook(
  em: Em,
  { actor, keyRing, chainKey, log }: { actor: string; keyRing: KeyRing; chainKey: KeyObject; log: Log },
  { webhookId, secret }: NewWebhook,
  { bizId, url, types = [], concurrency = 1, ...input }: Call<CreateWebhookInput>,
): Promise<IssuedWebhook> {
  const workspaceId = idToFind('workspace', input.workspaceId)
  const ledger = await lockLedger(em, workspaceId)
  const now = await databaseTime(em)
  const bizIdMac = webhookBizIdMac(chainKey, uuidFromId('workspace', workspaceId), bizId)
  const existing = await em.findOne(Webhook, { bizIdMac })
  if (existing) {
    requireUnmodified(existing, actor)
    const isSame = existing.url === url && isSameSet(existing.types, types) && existing.concurrency === concurrency
    if (!isSame || existing.deletedAt) throw new DomainError('T005', { bizId })
    return { ...toRecord(existing, now), secret: existing.id === webhookId ? secret : null }
  }
  if (!isPresent(ledger)) throw new DomainError('GA2032')
  if (ledger.status === 'HALTED' || !isGenuine(ledger)) throw new DomainError('S002', { retryAfterSeconds: 60 })
  if ((await findGenuine(em, { actor, log }, workspaceId)).length >= maxWebhooks)
    throw new DomainError('E003', { limit: maxWebhooks })
  const webhook = em.create(Webhook, {
    id: webhookId,
    workspaceId,
    bizId,
    bizIdMac,
    url,
    types,
    concurrency,
    status: 'ACTIVE',
    secret: encryptSecret(keyRing, { id: webhookId, workspaceId, version: 1 }, secret),
    secretVersion: 1,
    createdAt: now,
    updatedAt: now,
    position: ledger.position,
    generation: randomUUID(),
    leasedUntil: now,
    nextAttemptAt: now,
    failures: 0,
  })
  recordAction(em, { actor, action: 'webhook.create', workspaceId, target: webhookId, after: auditView(webhook) })
  return { ...toRecord(webhook, now), secret }
}

/**
 * Changes the fields that were sent. ACTIVE, and another URL or status, also end the wait for the next attempt. If all values
 * are the same as before, nothing else is written.
 *
 * @throws DomainError E002
 */
export async function updateWebhook(
  em: Em,
  actor: string,
  { workspaceId, webhookId, url, types, concurrency, status }: Call<UpdateWebhookInput>,
): Promise<WebhookRecord> {
  const { webhook, now } = await lockWebhook(em, actor, workspaceId, webhookId)
  const isStatusOnly = url === undefined && types === undefined && concurrency === undefined
  const before = auditView(webhook)
  if (url !== undefined) webhook.url = url
  if (types !== undefined && !isSameSet(webhook.types, types)) webhook.types = types
  if (concurrency !== undefined) webhook.concurrency = concurrency
  if (status !== undefined) webhook.status = status
  const isRetried = status === 'ACTIVE' && webhook.failures > 0
  if (isRetried || before.url !== webhook.url || before.status !== webhook.status) endWait(webhook, now)
  const statusAction = webhook.status === 'ACTIVE' ? 'webhook.resume' : 'webhook.pause'
  const action = isStatusOnly ? statusAction : 'webhook.update'
  const isChanged = JSON.stringify(auditView(webhook)) !== JSON.stringify(before)
  if (isChanged) recordChange(em, { actor, action, before, now }, webhook)
  return toRecord(webhook, now)
}

/**
 * Gives a webhook a new secret. Until the grace ends, deliveries are also signed with the previous one; a grace of 0 stops
 * its use at once. The grace of an earlier rotation ends.
 *
 * @throws DomainError E002
 */
export async function rotateWebhook(
  em: Em,
  { actor, keyRing }: { actor: string; keyRing: KeyRing },
  secret: string,
  { workspaceId, webhookId, graceSeconds = defaultWebhookGraceSeconds }: Call<RotateWebhookInput>,
): Promise<RotatedWebhook> {
  const { webhook, now } = await lockWebhook(em, actor, workspaceId, webhookId)
  const before = auditView(webhook)
  webhook.previousSecret = graceSeconds > 0 ? webhook.secret : null
  webhook.previousSecretUntil = graceSeconds > 0 ? new Date(now.getTime() + graceSeconds * 1000) : null
  webhook.secretVersion += 1
  webhook.secret = encryptSecret(keyRing, { id: webhookId, workspaceId, version: webhook.secretVersion }, secret)
  recordChange(em, { actor, action: 'webhook.rotate', before, now }, webhook)
  return { ...toRecord(webhook, now), secret }
}

/**
 * Moves a webhook to another position in the log: the next delivery is the first event after `after`.
 *
 * @throws DomainError E002; E001 if the log ends before `after`
 */
export async function seekWebhook(
  em: Em,
  actor: string,
  { workspaceId, webhookId, after: position }: Call<SeekWebhookInput>,
): Promise<WebhookRecord> {
  const { webhook, now } = await lockWebhook(em, actor, workspaceId, webhookId)
  const { position: head } = await em.findOneOrFail(Ledger, { workspaceId: webhook.workspaceId })
  if (position > head) throw new DomainError('E001', { position: head })
  const before = { ...auditView(webhook), position: webhook.position }
  webhook.position = position
  endWait(webhook, now)
  recordChange(em, { actor, action: 'webhook.seek', before, now }, webhook, { position })
  return toRecord(webhook, now)
}

/**
 * Deletes a webhook. Its row is kept, without secrets, and its bizId stays taken. Deleting it again has no effect. A webhook
 * that was modified outside the service can be deleted too.
 *
 * @throws DomainError E002
 */
export async function deleteWebhook(em: Em, actor: string, workspaceId: string, webhookId: string): Promise<void> {
  const webhook = await findLocked(em, actor, workspaceId, webhookId)
  if (webhook.deletedAt && isGenuine(webhook)) return
  const now = await databaseTime(em)
  const before = auditView(webhook)
  replaceRow(webhook)
  webhook.deletedAt ??= now
  webhook.secret = ''
  webhook.previousSecret = webhook.previousSecretUntil = null
  recordChange(em, { actor, action: 'webhook.delete', before, now }, webhook)
}

/** @throws DomainError E002; as `requireUnmodified` */
export async function findWebhook(
  em: Em,
  actor: string,
  workspaceId: string,
  webhookId: string,
): Promise<WebhookRecord> {
  const webhook = await em.findOne(Webhook, keyOf(workspaceId, webhookId))
  if (!webhook) throw new DomainError('E002')
  requireUnmodified(webhook, actor)
  if (webhook.deletedAt) throw new DomainError('E002')
  return toRecord(webhook, await databaseTime(em))
}

/**
 * A page of the webhooks of a workspace, by default newest first. There are at most 16. Those whose rows were modified outside the
 * service are left out: what they say is not what the client has set.
 *
 * @throws DomainError GA2032
 */
export async function listWebhooks(
  em: Em,
  by: { actor: string; log: Log },
  { filter, sort, page, size, ...input }: Call<ListWebhooksInput>,
): Promise<Page<WebhookRecord>> {
  const workspaceId = idToFind('workspace', input.workspaceId)
  if (!(await em.findOne(Ledger, { workspaceId }))) throw new DomainError('GA2032')
  const orderBy = sort.map(({ field, direction }) => ({ [field]: direction }))
  const webhooks = await findGenuine(em, by, workspaceId, [...orderBy, { createdAt: 'desc' }, { id: 'desc' }])
  const found = webhooks.filter(({ status }) => !filter.status || status === filter.status)
  const now = await databaseTime(em)
  const content = found.slice(page * size, (page + 1) * size).map(webhook => toRecord(webhook, now))
  const totalElements = found.length
  const totalPages = Math.ceil(totalElements / size)
  return { content, page: { size, number: totalElements === 0 ? 0 : page, totalElements, totalPages } }
}

/**
 * The IDs of the webhooks of a workspace whose rows were modified or written outside the service: up to a hundred. They get no
 * deliveries and can only be deleted.
 */
export async function findModified(em: Em, workspaceId: string): Promise<string[]> {
  // Deleted ones last, so that the next ones are listed after the first have been deleted.
  const orderBy: OrderDefinition<Webhook> = [{ deletedAt: 'asc nulls first' }, { id: 'asc' }]
  const webhooks = await em.find(
    Webhook,
    { workspaceId: idToFind('workspace', workspaceId) },
    { orderBy, limit: maxRows },
  )
  return webhooks.filter(webhook => !isGenuine(webhook)).map(({ id }) => id)
}

/** Pauses a webhook whose deliveries fail. The caller has locked its row, which is unmodified. */
export function pauseFailing(em: Em, webhook: Webhook, now: Date): void {
  const before = auditView(webhook)
  webhook.status = 'PAUSED'
  const { lastStatus = null, lastError = null, failingSince = null } = webhook
  const outcome = { lastStatus, lastError, failingSince }
  recordChange(em, { actor: coreActor, action: 'webhook.pause', before, now }, webhook, outcome)
}

/** @throws DomainError E002; as `requireUnmodified` */
async function lockWebhook(
  em: Em,
  actor: string,
  workspaceId: string,
  webhookId: string,
): Promise<{ webhook: Webhook; now: Date }> {
  const webhook = await findLocked(em, actor, workspaceId, webhookId)
  requireUnmodified(webhook, actor)
  if (webhook.deletedAt) throw new DomainError('E002')
  return { webhook, now: await databaseTime(em) }
}

/** How many rows of a workspace are read at most. Without forged ones, there are sixteen that are not deleted. */
const maxRows = 100

/**
 * The webhooks of a workspace that exist, without rows that were modified or written outside the service, of which there can be
 * any number.
 *
 * @throws DomainError S002 if there are too many. Operators get some of them, so that they can delete the forged ones
 */
async function findGenuine(
  em: Em,
  { actor, log }: { actor: string; log: Log },
  workspaceId: Id<'workspace'>,
  orderBy: OrderDefinition<Webhook> = [],
): Promise<Webhook[]> {
  const webhooks = await em.find(Webhook, { workspaceId, deletedAt: null }, { orderBy, limit: maxRows + 1 })
  if (webhooks.length > maxRows) {
    log.error({ workspaceId }, `more than ${maxRows} webhooks were written outside the service: run ledger verify`)
    if (changerOf(actor) !== 'OPERATOR') throw new DomainError('S002', { retryAfterSeconds: 60 })
  }
  return webhooks.filter(isGenuine)
}

function keyOf(workspaceId: string, webhookId: string) {
  return { id: idToFind('webhook', webhookId), workspaceId: idToFind('workspace', workspaceId) }
}

/**
 * A webhook, also a deleted one, locked until the transaction ends. Operators wait for the table, so that sessions that share the row one
 * after another do not keep them from it. Clients do not: the deliveries of all workspaces would wait with them.
 *
 * @throws DomainError E002
 */
async function findLocked(em: Em, actor: string, workspaceId: string, webhookId: string): Promise<Webhook> {
  if (changerOf(actor) === 'OPERATOR') await lockWebhooks(em)
  const lockMode = LockMode.PESSIMISTIC_WRITE
  const webhook = await em.findOne(Webhook, keyOf(workspaceId, webhookId), { lockMode })
  if (!webhook) throw new DomainError('E002')
  return webhook
}

/**
 * A webhook that was modified outside the service can only be deleted.
 *
 * @throws DomainError S002 for a client; AdminError NOT_ALLOWED for an operator
 */
function requireUnmodified(webhook: Webhook, actor: string): void {
  if (isGenuine(webhook)) return
  if (changerOf(actor) === 'OPERATOR') requireGenuine(webhook)
  throw new DomainError('S002', { retryAfterSeconds: 60 })
}

/**
 * Records a change in the audit, and invalidates the reports of earlier leases. A courier may still be sending what it has
 * leased, so its lease continues.
 *
 * @param details what the audit shows besides the row
 */
function recordChange(
  em: Em,
  { actor, action, before, now }: { actor: string; action: AuditAction; before: object; now: Date },
  webhook: Webhook,
  details?: object,
): void {
  webhook.generation = randomUUID()
  webhook.updatedAt = now
  const { id: target, workspaceId } = webhook
  recordAction(em, { actor, action, workspaceId, target, before, after: { ...auditView(webhook), ...details } })
}

function endWait(webhook: Webhook, now: Date): void {
  webhook.failures = 0
  webhook.failingSince = null
  webhook.nextAttemptAt = now
}

/** The state of a webhook in the audit, without secrets. `ledger verify` compares it with the row. */
function auditView(webhook: Webhook) {
  const { bizId, url, types, concurrency, status, secretVersion } = webhook
  const { previousSecretUntil = null, deletedAt = null } = webhook
  return { bizId, url, types, concurrency, status, secretVersion, previousSecretUntil, deletedAt }
}

function toRecord(webhook: Webhook, now: Date): WebhookRecord {
  const { id, bizId, url, types, concurrency, status, position, createdAt, updatedAt } = webhook
  const {
    lastStatus = null,
    lastError = null,
    lastAttemptAt = null,
    failingSince = null,
    previousSecretUntil = null,
  } = webhook
  return {
    webhookId: id,
    bizId,
    url,
    types,
    concurrency,
    status,
    position,
    lastStatus,
    lastError,
    lastAttemptAt,
    failingSince,
    previousSecretUntil: previousSecretUntil && previousSecretUntil > now ? previousSecretUntil : null,
    createdAt,
    updatedAt,
  }
}

function isSameSet(a: readonly string[], b: readonly string[]): boolean {
  return JSON.stringify(a.toSorted()) === JSON.stringify(b.toSorted())
}
