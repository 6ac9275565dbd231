import type { AuditAct } from '@workspace-wallet/contract'
import { AuditEntry } from '../audit/chain/entities.ts'
import { recordAct } from '../audit/chain/record.ts'
import type { Em } from '../database/orm.ts'

const act = 'nonces.begin' satisfies AuditAct

/**
 * Notes that gateways begin to use this memory of nonces, unless that is known. Only before the first one can no
 * request have been accepted: a gateway accepts none under a memory that is not noted here.
 */
export async function beginNonceMemory(em: Em, actor: string, memoryId: string): Promise<{ isFirst: boolean }> {
  // Of two that begin at once one is the first.
  await em.execute('select from access_revision for update')
  const begun = { act, workspaceId: null }
  const [first] = await em.find(AuditEntry, begun, { orderBy: { id: 'asc' }, limit: 1 })
  const isFirst = !first || first.target === memoryId
  if (!first || !(isFirst || (await em.count(AuditEntry, { ...begun, target: memoryId }))))
    recordAct(em, { actor, act, workspaceId: null, target: memoryId })
  return { isFirst }
}
