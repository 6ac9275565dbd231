import {
  type CreateTransferInput,
  DomainError,
  errorTable,
  isDomainError,
  mintId,
  postingGraceMs,
  type TransferOrder,
} from '@workspace-wallet/contract'
import {
  type CoreClient as Client,
  createCoreClient,
  domainErrorOf,
  NoAnswerError,
} from '@workspace-wallet/core-client'

export type CoreClient = Client

/** How long core may keep a create waiting before it drops it unbegun. */
const createBudgetMs = 5_000
/** How long a call may take to reach core. */
const transitMs = 1_000
/** How long after it left an attempt may still be posted. */
const attemptLifeMs = transitMs + createBudgetMs + postingGraceMs
/** When the caller of a create hears S003 at the latest, whatever became of its attempts. */
const createDeadlineMs = attemptLifeMs + 3_000
const resendPauseMs = 200

export function openCore(urls: string[], token: string): CoreClient {
  return createCoreClient({ url: urls, token })
}

/**
 * Asks core, and turns what can go wrong into public codes.
 *
 * @throws DomainError core's own refusal, or S002 when core is out of reach
 */
export async function ask<Answer>(call: Promise<Answer>): Promise<Answer> {
  try {
    return await call
  } catch (error) {
    throw asDomainError(error)
  }
}

/**
 * Creates a transfer. Its id is minted here, before it is forwarded: when an answer is lost it is sent again as the
 * same transfer, and core looks first whether it was done. The deadline bounds all of it: an attempt that is under way
 * then is aborted, and counts as lost if it was sent.
 *
 * A refusal of a re-sent create is believed only once no attempt whose answer was lost can be under way any more on
 * another core: else a transfer could be made after its client was told that it was refused.
 *
 * @throws DomainError core's refusal; S002 certainly not done; S003 when it cannot be told in time
 */
export async function createTransfer(
  core: CoreClient,
  input: Pick<CreateTransferInput, 'workspaceId' | 'caller' | 'order'>,
  clock = realClock,
): Promise<TransferOrder> {
  const transferId = mintId('transfer')
  const deadlineMs = clock.nowMs() + createDeadlineMs
  /** When the last attempt left whose answer was lost. */
  let lostMs: number | undefined
  for (;;) {
    const leftMs = Math.ceil(deadlineMs - clock.nowMs())
    if (leftMs <= 0) throw new DomainError('S003', { transferId })
    const timeout = clock.timeout(leftMs)
    try {
      const attempt = { transferId, resend: lostMs !== undefined, budgetMs: Math.min(createBudgetMs, leftMs) }
      return await core.transfers.create.mutate({ ...input, ...attempt }, { signal: timeout.signal })
    } catch (error) {
      const unanswered = unansweredCause(error)
      const refusal = asDomainError(error)
      if (unanswered?.sent) lostMs = unanswered.sentAtMs
      if (lostMs === undefined) throw refusal
      const isConclusive = isDomainError(refusal) && errorTable[refusal.code].http < 500
      if (isConclusive && clock.nowMs() - lostMs > attemptLifeMs) throw refusal
      await clock.pause(Math.min(resendPauseMs, deadlineMs - clock.nowMs()))
    } finally {
      timeout.clear()
    }
  }
}

const realClock = {
  nowMs: () => performance.now(),
  pause: (ms: number): Promise<unknown> => new Promise(resolve => setTimeout(resolve, ms)),
  /** In contrast to AbortSignal.timeout its timer ends with the call: at thousands a second they would pile up. */
  timeout(ms: number): { signal: AbortSignal; clear: () => void } {
    const controller = new AbortController()
    const timer = setTimeout(() => controller.abort(new DOMException('out of time', 'TimeoutError')), ms)
    return { signal: controller.signal, clear: () => clearTimeout(timer) }
  },
}

function asDomainError(error: unknown): unknown {
  if (unansweredCause(error)) return new DomainError('S002', { retryAfterSeconds: 1 })
  return domainErrorOf(error) ?? error
}

function unansweredCause(error: unknown): NoAnswerError | null {
  const { cause } = error as { cause?: unknown }
  return cause instanceof NoAnswerError ? cause : null
}
