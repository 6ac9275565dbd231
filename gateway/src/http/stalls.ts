const tickMs = 250
/** A timer that is this late was not late by chance. */
const stallMs = 1_000
/** How long the process may take to read what arrived during a stall. */
const recoveryMs = 1_000

/**
 * Notices that this process has not run for a while: it was frozen, or its event loop was blocked. What arrived meanwhile is read after
 * the timers, so deadlines have passed that clients have met.
 */
export class Stalls {
  #tickedAtMs = performance.now()
  #endedAtMs = Number.NEGATIVE_INFINITY
  readonly #timer = setInterval(() => {
    const nowMs = performance.now()
    if (nowMs - this.#tickedAtMs > stallMs) this.#endedAtMs = nowMs
    this.#tickedAtMs = nowMs
  }, tickMs).unref()

  /** Whether a stall has just ended. */
  get isRecovering(): boolean {
    const nowMs = performance.now()
    return nowMs - this.#tickedAtMs > stallMs || nowMs - this.#endedAtMs < recoveryMs
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}
