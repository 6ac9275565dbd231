/** OpenSSL takes 1 to 3 ms of CPU time for the certificates of usual receivers. */
const usualMs = 5
/** A workspace waits for so many times as long as OpenSSL took longer than that. */
const pauseFactor = 20

/**
 * When OpenSSL gets what receivers send. It does its work for the bytes at once, on the thread of all attempts. Some certificates of few
 * bytes take it 0.1 s, and so do thousands of messages that need no answer. Afterwards, the other receivers of that workspace wait, so
 * that they take about a twentieth of the thread.
 */
export class TlsTurns {
  /** By workspace: what waits until its pause has ended. */
  readonly #paused = new Map<string, (() => void)[]>()

  /** Calls `give`, which gives bytes to OpenSSL: at once, or when the workspace does not wait any more. */
  take(workspaceId: string, give: () => void): void {
    const waiting = this.#paused.get(workspaceId)
    if (waiting) return void waiting.push(give)
    const before = process.threadCpuUsage()
    give()
    const { user, system } = process.threadCpuUsage(before)
    const excessMs = (user + system) / 1000 - usualMs
    if (excessMs <= 0) return
    this.#paused.set(workspaceId, [])
    setTimeout(() => this.#continue(workspaceId), pauseFactor * excessMs)
  }

  #continue(workspaceId: string): void {
    const waiting = this.#paused.get(workspaceId)!
    this.#paused.delete(workspaceId)
    for (const give of waiting) this.take(workspaceId, give)
  }
}
