import { Decimal, idFromUuid } from '@workspace-wallet/contract'
import { changerOf } from '../../audit/actors.ts'
import type { Action } from '../../audit/chain.ts'
import type { Command, LedgerRequest, Made, MadeHold, MadeTransfer, RequestResult } from './requests.ts'

/**
 * Whether the audit records a command: deposits and withdrawals, and what operators reverse and release. What clients and
 * services do is in the ledger and the journal only.
 */
export function isAudited(command: Command): boolean {
  if (command.kind === 'posting') return command.type !== 'TRANSFER'
  const isOfOperators = command.kind === 'reversal' || command.kind === 'hold release'
  return isOfOperators && changerOf(command.actor) === 'OPERATOR'
}

/** The actions of what these requests have made. What was made before, and is found by a replay, has one already. */
export function auditActionsOf(requests: readonly LedgerRequest[], results: readonly RequestResult[]): Action[] {
  return requests.flatMap(({ workspaceId, commands }, at) => {
    const result = results[at]!
    if (result.kind !== 'posted') return []
    return commands.flatMap((command, place) => {
      if (!isAudited(command)) return []
      const { actor, requestId } = command
      const reason = ('reason' in command && command.reason) || null
      return [{ actor, requestId, reason, workspaceId, before: null, ...whatWasDone(result.made[place]!) }]
    })
  })
}

function whatWasDone(made: NonNullable<Made>): Pick<Action, 'action' | 'target' | 'after'> {
  return 'transfer' in made ? transferAction(made) : releaseAction(made)
}

function transferAction({ transfer }: MadeTransfer): Pick<Action, 'action' | 'target' | 'after'> {
  const { type, bizId, amount, currency, sourceWalletId, targetWalletId, reversesId } = transfer
  const after = JSON.stringify({ transferId: idFromUuid('transfer', transfer.transferId), bizId, amount, currency })
  if (type === 'DEPOSIT') return { action: 'wallet.deposit', target: idFromUuid('wallet', targetWalletId), after }
  if (type === 'WITHDRAWAL') return { action: 'wallet.withdraw', target: idFromUuid('wallet', sourceWalletId), after }
  return { action: 'transfer.reverse', target: idFromUuid('transfer', reversesId!), after }
}

function releaseAction({ hold }: MadeHold): Pick<Action, 'action' | 'target' | 'after'> {
  const { id, walletId, bizId, amount, captured, currency } = hold
  const released = new Decimal(amount).minus(captured).toFixed()
  const after = JSON.stringify({ walletId: idFromUuid('wallet', walletId), bizId, released, currency })
  return { action: 'hold.release', target: idFromUuid('hold', id), after }
}
