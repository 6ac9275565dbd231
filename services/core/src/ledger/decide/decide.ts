import { atBatchIndex, DomainError, idFromUuid, postingGraceMs } from '@workspace-wallet/contract'
import { decideHoldCreation, decideHoldRelease, expireDueHolds } from './decide-hold.ts'
import { decidePosting, decideReversal } from './decide-transfer.ts'
import { Draft } from './draft.ts'
import { repeatedBy } from './replays.ts'
import {
  type Command,
  type CommandKind,
  isAboutHolds,
  isBatch,
  type LedgerRequest,
  type Made,
  type MadeByKind,
  type RequestResult,
  refusal,
  unavailable,
} from './requests.ts'
import type { Decision, LedgerState } from './state.ts'

/**
 * Applies requests to a ledger. A pure function, except that it mints the IDs of events: it reads no clock and no database.
 *
 * Due holds of all wallets in the batch expire first. Then come the requests about holds, then those that move money, each
 * group in order. A rejected request has no effect on the others. A command that repeats an earlier one of the same batch is
 * a replay, as if the earlier one were already stored. Replay or T005 come first; then S002 for a late request; then GA2032
 * or S002 for a ledger that is not open; then the rejections of the command.
 *
 * @param now the database's clock: the time of what is posted
 * @param nowMs `performance.now()`, which is compared with the deadlines
 */
export function decide(ledger: LedgerState, requests: readonly LedgerRequest[], now: Date, nowMs: number): Decision {
  const draft = new Draft(ledger, now)
  if (ledger.status === 'OPEN') expireDueHolds(draft)
  const results = new Array<RequestResult>(requests.length)
  for (const areAboutHolds of [true, false])
    for (const [at, request] of requests.entries())
      if (isAboutHolds(request) === areAboutHolds) results[at] = decideRequest(draft, request, nowMs)
  return draft.decision(results)
}

function decideRequest(draft: Draft, request: LedgerRequest, nowMs: number): RequestResult {
  const repeated = decideRepeated(draft, request)
  if (repeated) return repeated
  // By now the caller may have received S002 from another core, which means "not posted".
  if (nowMs > request.deadlineMs + postingGraceMs) return unavailable()
  if (draft.ledger.status === 'CLOSED') return refusal(new DomainError('GA2032'))
  if (draft.ledger.status === 'MOVING') return unavailable()
  if (draft.ledger.status === 'HALTED') return refusal(new DomainError('S002', { retryAfterSeconds: 60 }))
  if (isBatch(request)) return decideBatch(draft, request)
  const outcome = decideCommand(draft, request.commands[0]!)
  return outcome instanceof DomainError ? refusal(outcome) : { kind: 'posted', made: [outcome] }
}

/** All commands of a request or none. The request is rejected with the error of the first one that fails. */
function decideBatch(draft: Draft, { commands }: LedgerRequest): RequestResult {
  const made: Made[] = []
  draft.begin()
  for (const [index, command] of commands.entries()) {
    const outcome = decideCommand(draft, command)
    if (outcome instanceof DomainError) {
      draft.undo()
      return refusal(atBatchIndex(outcome, index))
    }
    made.push(outcome)
  }
  draft.keep()
  // A later item may have reversed an earlier one.
  const records = made.map(each => (each && 'transfer' in each ? draft.made(each.transfer) : each))
  return { kind: 'posted', made: records }
}

/** How a command of each kind is decided. The checks of a command come before its effects. */
const deciders: { [Kind in CommandKind]: (draft: Draft, command: Command<Kind>) => MadeByKind[Kind] | DomainError } = {
  posting: decidePosting,
  reversal: decideReversal,
  'hold creation': decideHoldCreation,
  'hold release': decideHoldRelease,
  expiry: () => null,
}

function decideCommand<Kind extends CommandKind>(draft: Draft, command: Command<Kind>): MadeByKind[Kind] | DomainError {
  return deciders[command.kind](draft, command)
}

/**
 * A replay, if all commands repeat what exists. T005 if one differs from what exists under its name, or if only some exist.
 * Null if none exists.
 */
function decideRepeated(draft: Draft, request: LedgerRequest): RequestResult | null {
  const { commands } = request
  const repeated = commands.map(command => repeatedBy(draft, command))
  if (repeated.every(each => each === null)) return null
  const made = repeated.flatMap(each => (each === null || each === 'different' ? [] : [each]))
  if (made.length === commands.length) return { kind: 'replayed', made }
  const firstDifferent = repeated.indexOf('different')
  const index = firstDifferent >= 0 ? firstDifferent : repeated.findIndex(each => each !== null)
  const conflict = new DomainError('T005', { bizId: bizIdOf(commands[index]!) })
  return refusal(isBatch(request) ? atBatchIndex(conflict, index) : conflict)
}

function bizIdOf(command: Command): string {
  if ('bizId' in command && command.bizId !== null) return command.bizId
  return 'transferId' in command ? idFromUuid('transfer', command.transferId) : ''
}
