import { z } from 'zod'
import { plainText } from './text.ts'

/** Every action in the audit log. */
export const auditActions = [
  'hold.release',
  'kek.rotate',
  'key.create',
  'key.delete',
  'key.disable',
  'key.enable',
  'key.rotate',
  'key.set-expiry',
  'key.set-ips',
  'key.set-scopes',
  'ledger.halt',
  'ledger.reopen',
  'ledger.repair',
  'ledger.checkpoint',
  'ledger.verify',
  'ledger.verify-incremental',
  'limit.clear',
  'limit.set',
  'member.add',
  'member.remove',
  'nonces.begin',
  'operator.create',
  'operator.disable',
  'operator.rotate',
  'system.backup',
  'transfer.reverse',
  'wallet.close',
  'wallet.create',
  'wallet.deposit',
  'wallet.freeze',
  'wallet.unfreeze',
  'wallet.withdraw',
  'webhook.create',
  'webhook.delete',
  'webhook.pause',
  'webhook.resume',
  'webhook.rotate',
  'webhook.seek',
  'webhook.update',
  'workspace.arrive',
  'workspace.create',
  'workspace.delete',
  'workspace.leave',
  'workspace.move',
  'workspace.stay',
] as const
export type AuditAction = (typeof auditActions)[number]

/** An entry of the audit log: who did what, when, and what it changed. It never contains a secret. */
export const auditEntry = z.object({
  /** Ascending in each place. Failed actions leave gaps. */
  id: z.int(),
  /** By the clock of the database. */
  at: z.date(),
  /** `key:ak_…` of the API key, `operator:name`, `role:name` of the service token, or `core`. */
  actor: z.string(),
  /** One of `auditActions`. */
  action: z.string(),
  workspaceId: z.string().nullable(),
  /** The ID of the key, workspace, member or other object of the action. */
  target: z.string(),
  /** Why, if the actor has said so. */
  reason: z.string().nullable(),
  /** The call or request of the public API that did it, which the logs have too. Null for what core does by itself. */
  requestId: z.string().nullable(),
  /** What it changed. Null if the entry is not genuine. */
  before: z.unknown(),
  after: z.unknown(),
  /** Whether the MAC of the entry matches its content and the entry before it. */
  isGenuine: z.boolean(),
})
export type AuditEntry = z.infer<typeof auditEntry>

const maxFilterLength = 256

/** Where a page of numbered entries begins: before this number. With several places, before a number for each, with points between. */
export const beforeNumbers = z.string().regex(/^\d{1,16}(\.\d{1,16})*$/, 'NOT_A_POSITION')

/** Lists entries, newest first. `from` is inclusive, `to` exclusive. `before`: `next` of the previous page. */
export const listAuditInput = z.object({
  workspaceId: z.string().optional(),
  actor: plainText(maxFilterLength).optional(),
  action: plainText(maxFilterLength).optional(),
  target: plainText(maxFilterLength).optional(),
  requestId: plainText(maxFilterLength).optional(),
  from: z.date().optional(),
  to: z.date().optional(),
  before: beforeNumbers.optional(),
  limit: z.int().min(1).max(500).default(100),
})
export type AuditListing = z.infer<typeof listAuditInput>

/** `next`: the `before` of the next page; null on the last page. */
export const auditPage = z.object({ entries: z.array(auditEntry), next: z.string().nullable() })
export type AuditPage = z.infer<typeof auditPage>
