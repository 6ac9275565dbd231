import type { AuditAction } from '@workspace-wallet/contract'
import { AuditEntry } from '../audit/chain/entities.ts'
import { recordAction } from '../audit/chain/record.ts'
import type { Em } from '../database/orm.ts'
import { lockAccessRevision } from './revision.ts'

const action = 'nonces.begin' satisfies AuditAction

/**
 * Records a generation of the nonce store, if it is not recorded yet. Gateways accept requests only in a recorded
 * generation, so none has been accepted before the first one.
 */
export async function beginNonceGeneration(em: Em, actor: string, generationId: string): Promise<{ isFirst: boolean }> {
  // Two gateways may begin at the same time.
  await lockAccessRevision(em)
  const begun = { action, workspaceId: null }
  const [first] = await em.find(AuditEntry, begun, { orderBy: { id: 'asc' }, limit: 1 })
  const isFirst = !first || first.target === generationId
  if (!first || !(isFirst || (await em.count(AuditEntry, { ...begun, target: generationId }))))
    recordAction(em, { actor, action, workspaceId: null, target: generationId })
  return { isFirst }
}
