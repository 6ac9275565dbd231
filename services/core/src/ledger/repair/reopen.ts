import type { KeyObject } from 'node:crypto'
import { AdminError, countViolations, type VerifyReport } from '@workspace-wallet/contract'
import { recordAction } from '../../audit/chain/record.ts'
import type { Em } from '../../database/orm.ts'
import { isGenuine } from '../../database/row-signer.ts'
import { runIn } from '../../database/run.ts'
import type { Ledger } from '../rows/entities.ts'
import { changeLedgerStatus } from '../rows/functions.ts'
import { lockLedger } from '../rows/lock.ts'

/** The locked ledger of a halted workspace. @throws AdminError NOT_FOUND; NOT_ALLOWED if it is not halted */
export async function findHalted(em: Em, workspaceId: string): Promise<Ledger> {
  const ledger = await lockLedger(em, workspaceId)
  if (!ledger || ledger.status === 'CLOSED') throw new AdminError('NOT_FOUND', `There is no workspace ${workspaceId}.`)
  if (ledger.status !== 'HALTED')
    throw new AdminError('NOT_ALLOWED', `${workspaceId} is not halted: it takes postings.`)
  return ledger
}

/** Lets a halted workspace post again. The audit records who reopened it, and with how many violations. */
export async function reopenLedger(
  em: Em,
  { actor, chainKey }: { actor: string; chainKey: KeyObject },
  workspaceId: string,
  { ok, brokenRules }: VerifyReport,
): Promise<void> {
  const ledger = await findHalted(em, workspaceId)
  const { row, mac } = ledger
  const { status, haltReason } = row
  // The verification found a genuine row, so this one was modified since. Signing it would make it genuine.
  if (ok && !isGenuine(ledger))
    throw new AdminError(
      'NOT_ALLOWED',
      `The ledger of ${workspaceId} was modified outside the service during the verification: run ledger repair.`,
    )
  // With --force, the operator takes responsibility for its counters.
  const open = { status: 'OPEN', haltReason: null }
  await changeLedgerStatus(runIn(em), chainKey, { ...row, mac }, open, true)
  recordAction(em, {
    actor,
    action: 'ledger.reopen',
    workspaceId,
    target: workspaceId,
    before: { status, haltReason },
    after: { status: open.status, forced: !ok, violations: countViolations(brokenRules) },
  })
}
