import { DomainError, type Id, uuidFromId } from '@workspace-wallet/contract'
import type { Em } from '../../database/orm.ts'
import { isGenuine } from '../../database/row-signer.ts'
import { runIn } from '../../database/run.ts'
import { statement } from '../../database/statement.ts'
import { Ledger } from './entities.ts'

const lockLedgerStatement = statement('lock-ledger', 'select from lock_ledgers(array[$1::uuid])')

/**
 * Locks the ledger of a workspace until the transaction ends, which serializes postings and administration.
 *
 * @returns null when the workspace has no ledger
 * @throws DomainError S002 while the workspace moves to another place
 */
export async function lockLedger(em: Em, workspaceId: Id<'workspace'>): Promise<Ledger | null> {
  const ledger = await lockAnyLedger(em, workspaceId)
  if (ledger?.status === 'MOVING') throw new DomainError('S002', { retryAfterSeconds: 1 })
  return ledger
}

/** Like `lockLedger`, also while the workspace moves to another place. */
export async function lockAnyLedger(em: Em, workspaceId: Id<'workspace'>): Promise<Ledger | null> {
  await runIn(em)(lockLedgerStatement, [uuidFromId('workspace', workspaceId)])
  return em.findOne(Ledger, { workspaceId })
}

/**
 * Whether a workspace exists and is not deleted. One whose ledger was closed outside the service is not deleted: its ledger counts as
 * modified.
 */
export function isPresent(ledger: Ledger | null): ledger is Ledger {
  return ledger !== null && !(ledger.status === 'CLOSED' && isGenuine(ledger))
}
