import {
  type CreateTransferInput,
  DomainError,
  errorTable,
  mintId,
  postingGraceMs,
  type TransferOrder,
} from '@workspace-wallet/contract'
import type { CoreClient } from '@workspace-wallet/core-client'
import { noAnswerCause, toDomainError } from './domain-errors.ts'

/** How long core may keep a create in its queue before it rejects it. */
const createBudgetMs = 5_000
/** How long a call may take to reach core. */
const transitMs = 1_000
/** How long after it was sent an attempt can still be posted. */
const attemptLifeMs = transitMs + createBudgetMs + postingGraceMs
/** When a create fails with S003, whatever the state of its attempts. */
const createDeadlineMs = attemptLifeMs + 3_000
const retryPauseMs = 200

/**
 * Creates a transfer. If an answer is lost, it sends the create again with the same transferId, and core first looks up
 * whether the transfer exists. At the deadline, a pending attempt is aborted; it counts as lost if it was sent.
 *
 * The rejection of a retry is final only when no attempt with a lost answer can still be posted by another core.
 * Otherwise a transfer could be made after its client was told that it was rejected.
 *
 * @throws DomainError core's error; S002 if the transfer was certainly not made; S003 if the outcome is unknown at the
 *   deadline
 */
export async function createTransferWithRetry(
  core: CoreClient,
  input: Pick<CreateTransferInput, 'workspaceId' | 'caller' | 'order'>,
  clock = realClock,
): Promise<TransferOrder> {
  const transferId = mintId('transfer')
  const deadlineMs = clock.nowMs() + createDeadlineMs
  /** When the last attempt with a lost answer was sent. */
  let lostMs: number | undefined
  for (;;) {
    const leftMs = Math.ceil(deadlineMs - clock.nowMs())
    if (leftMs <= 0) throw new DomainError('S003', { transferId })
    const timeout = clock.timeout(leftMs)
    try {
      const attempt = { transferId, resend: lostMs !== undefined, budgetMs: Math.min(createBudgetMs, leftMs) }
      return await core.transfers.create.mutate({ ...input, ...attempt }, { signal: timeout.signal })
    } catch (error) {
      const noAnswer = noAnswerCause(error)
      if (noAnswer?.sent) lostMs = noAnswer.sentAtMs
      const rejection = toDomainError(error)
      if (lostMs === undefined) throw rejection ?? error
      const isFinal = rejection !== null && errorTable[rejection.code].http < 500
      if (isFinal && clock.nowMs() - lostMs > attemptLifeMs) throw rejection
      await clock.pause(Math.min(retryPauseMs, deadlineMs - clock.nowMs()))
    } finally {
      timeout.clear()
    }
  }
}

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
