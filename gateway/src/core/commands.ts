import {
  type CreateBatchInput,
  type CreateHoldInput,
  type CreateTransferInput,
  DomainError,
  errorTable,
  type Hold,
  mintId,
  postingGraceMs,
  type ReleaseHoldInput,
  type ReverseTransferInput,
  type TransferBatch,
  type TransferOrder,
} from '@workspace-wallet/contract'
import { type CoreClient, noAnswerErrorOf } from '@workspace-wallet/core-client'
import { activeSpan, addAttributes } from '@workspace-wallet/runtime/tracing'
import { toDomainError } from './domain-errors.ts'

/** How long core may keep a command in its queue before it rejects it. */
const commandBudgetMs = 5_000
/** How long a call may take to reach core. */
const transitMs = 1_000
/** How long after it was sent an attempt can still be executed. */
const attemptLifeMs = transitMs + commandBudgetMs + postingGraceMs
/** When a command fails with S003, whatever the state of its attempts. */
const commandDeadlineMs = attemptLifeMs + 3_000
const retryPauseMs = 200

/** What only the gateway adds to a command. */
type Added = 'resend' | 'budgetMs' | 'transferId' | 'transferIds'

export function createTransfer(
  core: CoreClient,
  input: Omit<CreateTransferInput, Added>,
  clock?: Clock,
): Promise<TransferOrder> {
  const transferId = mintId('transfer')
  const send: Send<TransferOrder> = (attempt, options) =>
    core.transfers.create.mutate({ ...input, transferId, ...attempt }, options)
  return noteTransfer(sendWithRetry(send, { transferId }, clock))
}

/** Says which transfer a traced request made or repeated. */
async function noteTransfer(order: Promise<TransferOrder>): Promise<TransferOrder> {
  addAttributes(activeSpan(), { 'wallet.transfer.id': (await order).transferId })
  return order
}

export function createBatch(core: CoreClient, input: Omit<CreateBatchInput, Added>): Promise<TransferBatch> {
  const transferIds = input.batch.transfers.map(() => mintId('transfer'))
  return sendWithRetry((attempt, options) =>
    core.transfers.batch.mutate({ ...input, transferIds, ...attempt }, options),
  )
}

export function reverseTransfer(core: CoreClient, input: Omit<ReverseTransferInput, Added>): Promise<TransferOrder> {
  const transferId = mintId('transfer')
  const send: Send<TransferOrder> = (attempt, options) =>
    core.transfers.reverse.mutate({ ...input, transferId, ...attempt }, options)
  return noteTransfer(sendWithRetry(send))
}

export function createHold(core: CoreClient, input: Omit<CreateHoldInput, Added | 'holdId'>): Promise<Hold> {
  const holdId = mintId('hold')
  return sendWithRetry((attempt, options) => core.holds.create.mutate({ ...input, holdId, ...attempt }, options))
}

export function releaseHold(core: CoreClient, input: Omit<ReleaseHoldInput, Added>): Promise<Hold> {
  return sendWithRetry((attempt, options) => core.holds.release.mutate({ ...input, ...attempt }, options))
}

/** Sends one attempt. `resend`: whether an earlier one may have been executed. */
type Send<Answer> = (
  attempt: { resend: boolean; budgetMs: number },
  options: { signal: AbortSignal },
) => Promise<Answer>

/**
 * Sends a command. If a response is lost, it sends the same command again with the same IDs, and core first looks up whether
 * it was executed. At the deadline, a pending attempt is aborted; it counts as lost if it was sent.
 *
 * The rejection of a retry is final only when no attempt with a lost response can still be executed by another core.
 * Otherwise a transfer could be made after its client was told that it was rejected. That core no longer accepts the API key says
 * nothing about a lost attempt.
 *
 * @param details of S003
 * @throws DomainError core's error; S002 if the command was certainly not executed; S003 if the outcome is unknown at the
 *   deadline
 */
async function sendWithRetry<Answer>(
  send: Send<Answer>,
  details?: { transferId: string },
  clock: Clock = realClock,
): Promise<Answer> {
  const deadlineMs = clock.nowMs() + commandDeadlineMs
  /** When the last attempt with a lost response was sent. */
  let lostMs: number | undefined
  for (;;) {
    const leftMs = Math.ceil(deadlineMs - clock.nowMs())
    if (leftMs <= 0) throw new DomainError('S003', details)
    const timeout = clock.timeout(leftMs)
    try {
      const attempt = { resend: lostMs !== undefined, budgetMs: Math.min(commandBudgetMs, leftMs) }
      return await send(attempt, { signal: timeout.signal })
    } catch (error) {
      const noAnswer = noAnswerErrorOf(error)
      if (noAnswer?.sent) lostMs = noAnswer.sentAtMs
      const rejection = toDomainError(error)
      if (lostMs === undefined) throw rejection ?? error
      // Core checks the key before it looks for the lost attempt.
      if (rejection?.code.startsWith('GA')) throw new DomainError('S003', details)
      const isFinal = rejection !== null && errorTable[rejection.code].http < 500
      if (isFinal && clock.nowMs() - lostMs > attemptLifeMs) throw rejection
      await clock.pause(Math.min(retryPauseMs, deadlineMs - clock.nowMs()))
    } finally {
      timeout.clear()
    }
  }
}

/**
 * Sends a command that core does not execute from its queue, and so not within a budget.
 *
 * @throws DomainError core's error; S002 if the command was not sent; S003 if its response was lost
 */
export async function sendOnce<Answer>(send: () => Promise<Answer>): Promise<Answer> {
  try {
    return await send()
  } catch (error) {
    throw noAnswerErrorOf(error)?.sent ? new DomainError('S003') : error
  }
}

type Clock = typeof realClock

const realClock = {
  nowMs: () => performance.now(),
  pause: (ms: number): Promise<unknown> => new Promise(resolve => setTimeout(resolve, ms)),
  /** Unlike AbortSignal.timeout, its timer is cleared when the call ends: at thousands of calls a second, timers would pile up. */
  timeout(ms: number): { signal: AbortSignal; clear: () => void } {
    const controller = new AbortController()
    const timer = setTimeout(() => controller.abort(new DOMException('out of time', 'TimeoutError')), ms)
    return { signal: controller.signal, clear: () => clearTimeout(timer) }
  },
}
