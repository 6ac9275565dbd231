/** A connection to a usual receiver takes 1 to 3 ms of CPU time with TLS, most of it for the certificates, and a tenth of that without. */
const usualMs = 5
/** A workspace waits for so many times as long as a connection took longer than that. */
const pauseFactor = 20
/**
 * If it took a multiple of this, which nothing known does, the workspace waits for that multiple as well: all deliveries had to wait.
 */
const longMs = 100

/** What a connection may still take before its workspace waits. */
export type Allowance = { leftMs: number }

type Pause = { endsAtMs: number; waiting: (() => void)[] }

/**
 * When OpenSSL, or without TLS the HTTP parser, gets what receivers send. It does its work for the bytes at once, on the thread of all
 * attempts. Some certificates of few bytes, and thousands of messages that need no answer, take OpenSSL 0.1 s; 64 KiB of the smallest
 * chunks take the parser 8 ms. Afterwards, all receivers of that workspace wait, so that they take about a twentieth of the thread, and
 * less if they take long at a time.
 */
export class ReceiverTurns {
  readonly #paused = new Map<string, Pause>()

  /** For a new connection. */
  newAllowance(): Allowance {
    return { leftMs: usualMs }
  }

  /** How long the receivers of a workspace still wait. */
  pauseMs(workspaceId: string): number {
    const pause = this.#paused.get(workspaceId)
    return pause ? pause.endsAtMs - performance.now() : 0
  }

  /** Calls `give`, which passes on bytes of a connection: at once, or when the workspace does not wait any more. */
  take(workspaceId: string, allowance: Allowance, give: () => void): void {
    const pause = this.#paused.get(workspaceId)
    if (pause) return void pause.waiting.push(() => this.take(workspaceId, allowance, give))
    const before = process.threadCpuUsage()
    give()
    const { user, system } = process.threadCpuUsage(before)
    const excessMs = (user + system) / 1000 - allowance.leftMs
    allowance.leftMs = Math.max(0, -excessMs)
    if (excessMs <= 0) return
    const pauseMs = pauseFactor * excessMs * Math.max(1, excessMs / longMs)
    this.#paused.set(workspaceId, { endsAtMs: performance.now() + pauseMs, waiting: [] })
    setTimeout(() => this.#continue(workspaceId), pauseMs).unref()
  }

  #continue(workspaceId: string): void {
    const { waiting } = this.#paused.get(workspaceId)!
    this.#paused.delete(workspaceId)
    for (const takeAgain of waiting) takeAgain()
  }
}
