import type { KeyObject } from 'node:crypto'
import { type AuditAction, DomainError, type NonceGeneration } from '@workspace-wallet/contract'
import { type FoundAction, readAction, selectAction } from '../audit/chain.ts'
import { recordAction } from '../audit/record.ts'
import { databaseTime } from '../database/clock.ts'
import type { Em } from '../database/orm.ts'
import type { AuditRow } from '../database/tables/audit.ts'
import { lockAccessRevision } from './revision.ts'

const action = 'nonces.begin' satisfies AuditAction
/** How long after a generation began another one can begin: whoever has the token of a gateway cannot fill the audit log. */
const minIntervalMs = 1_000

/**
 * Records a generation of the nonce store, if it is not recorded yet. Gateways accept requests only in a recorded
 * generation, so none has been accepted before the first one. Entries of the audit that the service has not written count for nothing.
 *
 * @throws DomainError S002 if another generation has just begun
 */
export async function beginNonceGeneration(
  em: Em,
  chainKey: KeyObject,
  actor: string,
  generationId: string,
): Promise<NonceGeneration> {
  const recorded = await findGeneration(em, chainKey, generationId)
  if (recorded) return recorded
  // Two gateways may begin at the same time.
  await lockAccessRevision(em)
  const recordedMeanwhile = await findGeneration(em, chainKey, generationId)
  if (recordedMeanwhile) return recordedMeanwhile
  const isFirst = (await findBegun(em, chainKey, 'asc')) === null
  recordAction(em, { actor, action, workspaceId: null, target: generationId })
  return { isFirst, isLatest: true }
}

/** A recorded generation; null if it is new and may begin. @throws DomainError S002 */
async function findGeneration(em: Em, chainKey: KeyObject, generationId: string): Promise<NonceGeneration | null> {
  if (await findBegun(em, chainKey, 'asc', generationId)) {
    // Each generation is recorded once.
    const [first, last] = [await findBegun(em, chainKey, 'asc'), await findBegun(em, chainKey, 'desc')]
    return { isFirst: first?.target === generationId, isLatest: last?.target === generationId }
  }
  const last = await findBegun(em, chainKey, 'desc')
  if (!last) return null
  const sinceMs = (await databaseTime(em)).getTime() - last.at.getTime()
  // Negative after the clock was set back.
  if (sinceMs >= 0 && sinceMs < minIntervalMs) throw new DomainError('S002', { retryAfterSeconds: 1 })
  return null
}

const entriesPerPage = 100

/** The first genuine entry of a generation in this order: of this one, or of any. */
async function findBegun(
  em: Em,
  chainKey: KeyObject,
  order: 'asc' | 'desc',
  generationId: string | null = null,
): Promise<AuditRow | null> {
  let after = order === 'asc' ? '0' : '9223372036854775807'
  for (;;) {
    const rows = await em.execute<(FoundAction & { id: string })[]>(
      `select a.id::text, ${selectAction}
       from audit a
       where a.workspace_id is null and a.action = '${action}' and a.id ${order === 'asc' ? '>' : '<'} ?
         and (?::text is null or a.target = ?)
       order by a.id ${order} limit ${entriesPerPage}`,
      [after, generationId, generationId],
    )
    for (const found of rows) {
      const { action: entry, isGenuine } = readAction(chainKey, found)
      if (isGenuine) return entry
    }
    if (rows.length < entriesPerPage) return null
    after = rows.at(-1)!.id
  }
}
