import {
  type CoreClient as Client,
  CoreUnreachable,
  createCoreClient,
  domainErrorOf,
} from '@workspace-wallet/core/client'
import {
  type CreateTransferInput,
  DomainError,
  errorTable,
  isDomainError,
  mintId,
  postingGraceMs,
  type TransferOrder,
} from '@workspace-wallet/core/contract'

export type CoreClient = Client

/** How long core may keep a create waiting before it drops it unbegun. */
const createBudgetMs = 5_000
/** How long a call may take to reach core. */
const transitMs = 1_000
/** How long after it left an attempt may still be posted. */
const attemptLifeMs = transitMs + createBudgetMs + postingGraceMs
/** When the caller of a create hears S003 at the latest. */
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
 * same transfer, and core looks first whether it was done.
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
  const calledAtMs = clock.nowMs()
  /** When the last attempt left whose answer was lost. */
  let lostMs: number | undefined
  for (;;) {
    try {
      const resend = lostMs !== undefined
      return await core.transfers.create.mutate({ ...input, transferId, resend, budgetMs: createBudgetMs })
    } catch (error) {
      const nowMs = clock.nowMs()
      const unreachable = unreachableCause(error)
      const refusal = asDomainError(error)
      if (unreachable?.sent) lostMs = unreachable.departedAtMs
      if (lostMs === undefined) throw refusal
      const isConclusive = isDomainError(refusal) && errorTable[refusal.code].http < 500
      if (isConclusive && nowMs - lostMs > attemptLifeMs) throw refusal
      if (nowMs - calledAtMs > createDeadlineMs) throw new DomainError('S003', { transferId })
      await clock.pause(resendPauseMs)
    }
  }
}

const realClock = {
  nowMs: () => performance.now(),
  pause: (ms: number): Promise<unknown> => new Promise(resolve => setTimeout(resolve, ms)),
}

function asDomainError(error: unknown): unknown {
  if (unreachableCause(error)) return new DomainError('S002', { retryAfterSeconds: 1 })
  return domainErrorOf(error) ?? error
}

function unreachableCause(error: unknown): CoreUnreachable | null {
  const { cause } = error as { cause?: unknown }
  return cause instanceof CoreUnreachable ? cause : null
}
