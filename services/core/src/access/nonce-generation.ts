import type { AuditAction } from '@workspace-wallet/contract'
import { AuditEntry } from '../audit/chain/entities.ts'
import { recordAction } from '../audit/chain/record.ts'
import type { Em } from '../database/orm.ts'

const action = 'nonces.begin' satisfies AuditAction

/**
 * Records a generation of the nonce store, unless it is recorded already. Only before the first one can no
 * request have been accepted: a gateway accepts none in a generation that is not recorded.
 */
export async function beginNonceGeneration(em: Em, actor: string, generationId: string): Promise<{ isFirst: boolean }> {
  // Of two that begin at once one is the first.
  await em.execute('select from access_revision for update')
  const begun = { action, workspaceId: null }
  const [first] = await em.find(AuditEntry, begun, { orderBy: { id: 'asc' }, limit: 1 })
  const isFirst = !first || first.target === generationId
  if (!first || !(isFirst || (await em.count(AuditEntry, { ...begun, target: generationId }))))
    recordAction(em, { actor, action, workspaceId: null, target: generationId })
  return { isFirst }
}
