import type { KeyObject } from 'node:crypto'
import { AdminError, countViolations, type Id, type VerifyReport } from '@workspace-wallet/contract'
import { recordAction } from '../../audit/record.ts'
import type { Em } from '../../database/orm.ts'
import { isGenuine } from '../../database/row-signer.ts'
import { runIn } from '../../database/run.ts'
import type { Ledger } from '../../ledger/rows/entities.ts'
import { changeLedgerStatus } from '../../ledger/rows/functions.ts'
import { isPresent, lockLedger } from '../../ledger/rows/lock.ts'
import { closedOutside } from '../../ledger/store/halt.ts'
import { Workspace } from '../../workspaces/entities.ts'

/** The locked ledger of a halted workspace. @throws AdminError NOT_FOUND; NOT_ALLOWED if it is not halted */
export async function findHalted(em: Em, workspaceId: Id<'workspace'>): Promise<Ledger> {
  const ledger = await lockLedger(em, workspaceId)
  if (!isPresent(ledger)) throw new AdminError('NOT_FOUND', `There is no workspace ${workspaceId}.`)
  if (ledger.status === 'CLOSED')
    throw new AdminError(
      'NOT_ALLOWED',
      `The ledger of ${workspaceId} was closed outside the service just now: try again.`,
    )
  if (ledger.status !== 'HALTED')
    throw new AdminError('NOT_ALLOWED', `${workspaceId} is not halted: it takes postings.`)
  return ledger
}

/**
 * Halts a ledger that was closed outside the service. Like any other whose row was modified, it can then be repaired.
 *
 * @throws AdminError NOT_ALLOWED if the row of the workspace says that it is deleted
 */
export async function haltClosed(em: Em, { actor, chainKey }: Operator, workspaceId: Id<'workspace'>): Promise<void> {
  const ledger = await lockLedger(em, workspaceId)
  if (!isPresent(ledger) || ledger.status !== 'CLOSED') return
  if ((await em.count(Workspace, { id: workspaceId, deletedAt: null })) === 0)
    throw new AdminError(
      'NOT_ALLOWED',
      `The row of ${workspaceId} or of its ledger was modified outside the service: restore the row of the workspace first.`,
    )
  const { row, mac } = ledger
  const halted = { status: 'HALTED' as const, haltReason: closedOutside }
  await changeLedgerStatus(runIn(em), chainKey, { ...row, mac }, halted, false)
  const after = { reason: closedOutside }
  recordAction(em, { actor, action: 'ledger.halt', workspaceId, target: workspaceId, after })
}

type Operator = { actor: string; chainKey: KeyObject }

/** Lets a halted workspace post again. The audit records who reopened it, and with how many violations. */
export async function reopenLedger(
  em: Em,
  { actor, chainKey }: Operator,
  workspaceId: Id<'workspace'>,
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
  const open = { status: 'OPEN' as const, haltReason: null }
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
