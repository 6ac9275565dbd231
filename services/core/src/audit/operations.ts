import type { AuditAct } from '../../contract/index.ts'
import type { Em } from '../db/orm.ts'
import { AuditEntry } from './entities.ts'

export type AuditedAct = {
  actor: string
  act: AuditAct
  workspaceId: string | null
  /** The id of what was acted on. */
  target: string
  before?: unknown
  after?: unknown
}

/** Writes an act into the audit, in the transaction that does it. Never give it a secret. */
export function recordAct(em: Em, { before = null, after = null, ...act }: AuditedAct): void {
  em.persist(em.create(AuditEntry, { before, after, ...act }))
}
