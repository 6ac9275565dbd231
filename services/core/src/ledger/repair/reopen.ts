import { LockMode } from '@mikro-orm/core'
import { AdminError, type VerifyReport } from '@workspace-wallet/contract'
import { recordAction } from '../../audit/chain/record.ts'
import type { Em } from '../../database/orm.ts'
import { isGenuine, replaceRow } from '../../database/row-signer.ts'
import { Ledger } from '../posting/entities.ts'

/** @throws AdminError unless postings of the workspace are stopped */
export async function findHalted(em: Em, workspaceId: string): Promise<Ledger> {
  const ledger = await em.findOne(Ledger, { workspaceId }, { lockMode: LockMode.PESSIMISTIC_WRITE })
  if (!ledger || ledger.status === 'CLOSED') throw new AdminError('NOT_FOUND', `There is no workspace ${workspaceId}.`)
  if (ledger.status !== 'HALTED')
    throw new AdminError('NOT_ALLOWED', `${workspaceId} is not halted: it takes postings.`)
  return ledger
}

/** Lets a halted workspace post again. What was found broken, and who opened it all the same, stays in the audit. */
export async function reopenLedger(
  em: Em,
  actor: string,
  workspaceId: string,
  { ok, violations, more }: VerifyReport,
): Promise<void> {
  const ledger = await findHalted(em, workspaceId)
  const { status, haltReason } = ledger
  // A sound verification read a genuine row: this one was written since, and signing it would make it genuine.
  if (ok && !isGenuine(ledger))
    throw new AdminError(
      'NOT_ALLOWED',
      `The ledger of ${workspaceId} was modified outside the service while it was verified: run ledger repair.`,
    )
  // With --force an operator answers for its counters.
  replaceRow(ledger)
  ledger.status = 'OPEN'
  ledger.haltReason = null
  recordAction(em, {
    actor,
    action: 'ledger.reopen',
    workspaceId,
    target: workspaceId,
    before: { status, haltReason },
    after: { status: ledger.status, forced: !ok, violations: violations.length + more },
  })
  await em.flush()
}
