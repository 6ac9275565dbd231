import { type AuditAction, DomainError, type NonceGeneration } from '@workspace-wallet/contract'
import { AuditEntry } from '../audit/entities.ts'
import { recordAction } from '../audit/record.ts'
import { databaseTime } from '../database/clock.ts'
import type { Em } from '../database/orm.ts'
import { lockAccessRevision } from './revision.ts'

const action = 'nonces.begin' satisfies AuditAction
/** How long after a generation began another one can begin: whoever has the token of a gateway cannot fill the audit log. */
const minIntervalMs = 1_000

/**
 * Records a generation of the nonce store, if it is not recorded yet. Gateways accept requests only in a recorded
 * generation, so none has been accepted before the first one.
 *
 * @throws DomainError S002 if another generation has just begun
 */
export async function beginNonceGeneration(em: Em, actor: string, generationId: string): Promise<NonceGeneration> {
  const recorded = await findGeneration(em, generationId)
  if (recorded) return recorded
  // Two gateways may begin at the same time.
  await lockAccessRevision(em)
  const recordedMeanwhile = await findGeneration(em, generationId)
  if (recordedMeanwhile) return recordedMeanwhile
  const isFirst = (await em.count(AuditEntry, begun)) === 0
  recordAction(em, { actor, action, workspaceId: null, target: generationId })
  return { isFirst, isLatest: true }
}

const begun = { action, workspaceId: null }
const oldestFirst = { orderBy: { id: 'asc' }, limit: 1 } as const

/** A recorded generation; null if it is new and may begin. @throws DomainError S002 */
async function findGeneration(em: Em, generationId: string): Promise<NonceGeneration | null> {
  // The first entry of a generation counts: whoever can append to the audit cannot make an earlier one the latest.
  const [recorded] = await em.find(AuditEntry, { ...begun, target: generationId }, oldestFirst)
  if (recorded) {
    const [first] = await em.find(AuditEntry, begun, oldestFirst)
    const later = { ...begun, id: { $gt: recorded.id }, target: { $ne: generationId } }
    return { isFirst: first!.id === recorded.id, isLatest: (await em.count(AuditEntry, later)) === 0 }
  }
  const [last] = await em.find(AuditEntry, begun, { orderBy: { id: 'desc' }, limit: 1 })
  if (!last) return null
  const sinceMs = (await databaseTime(em)).getTime() - last.at.getTime()
  // Negative after the clock was set back.
  if (sinceMs >= 0 && sinceMs < minIntervalMs) throw new DomainError('S002', { retryAfterSeconds: 1 })
  return null
}
