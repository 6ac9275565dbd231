import { z } from 'zod'

/** Every action that the audit can hold. */
export const auditActions = [
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
  'member.add',
  'member.remove',
  'nonces.begin',
  'wallet.close',
  'wallet.create',
  'wallet.deposit',
  'wallet.freeze',
  'wallet.unfreeze',
  'wallet.withdraw',
  'workspace.create',
  'workspace.delete',
] as const
export type AuditAction = (typeof auditActions)[number]

/** An administrative action: who did what to what, when, and what it changed. Never a secret. */
export const auditEntry = z.object({
  /** Counts up; actions that failed leave gaps. */
  id: z.int(),
  /** The database's clock. */
  at: z.date(),
  /** `role:name` of the service token, or `core` itself. */
  actor: z.string(),
  /** `key.disable`, `workspace.create` and the like. */
  action: z.string(),
  workspaceId: z.string().nullable(),
  /** The id of what was acted on. */
  target: z.string(),
  before: z.unknown(),
  after: z.unknown(),
})
export type AuditEntry = z.infer<typeof auditEntry>

/** Newest first; `from` inclusive, `to` exclusive. `before` is the `next` of the page that came before. */
export const listAuditInput = z.object({
  workspaceId: z.string().optional(),
  actor: z.string().optional(),
  action: z.string().optional(),
  target: z.string().optional(),
  from: z.date().optional(),
  to: z.date().optional(),
  before: z.int().min(0).optional(),
  limit: z.int().min(1).max(500).default(100),
})
export type AuditListing = z.infer<typeof listAuditInput>

/** `next`: what to give as `before` for older actions; null at the end. */
export const auditPage = z.object({ entries: z.array(auditEntry), next: z.int().nullable() })
export type AuditPage = z.infer<typeof auditPage>
