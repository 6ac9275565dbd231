import type { Uuid } from '@workspace-wallet/contract'

const firstDelayMs = 1_000
const maxDelayMs = 600_000
/** Whoever has the service's role can forge any number of workspaces. Beyond this number, the earliest are found again. */
const maxWorkspaces = 1_000

/**
 * Workspaces that sweeps leave out: while their holds are being expired, and after that failed, for twice as long each time. So core
 * does not halt a forged workspace each second that somebody opens again each second.
 */
export class LeftOut {
  readonly #now: () => number
  readonly #workspaces = new Map<Uuid<'workspace'>, { untilMs: number; delayMs: number }>()

  /** @param now a monotonic clock, in milliseconds */
  constructor(now = () => performance.now()) {
    this.#now = now
  }

  /** Leaves a workspace out until `end`. */
  start(workspaceId: Uuid<'workspace'>): void {
    const delayMs = this.#workspaces.get(workspaceId)?.delayMs ?? 0
    this.#set(workspaceId, { untilMs: Number.POSITIVE_INFINITY, delayMs })
  }

  end(workspaceId: Uuid<'workspace'>, isExpired: boolean): void {
    const delayMs = Math.min(maxDelayMs, 2 * (this.#workspaces.get(workspaceId)?.delayMs ?? 0) || firstDelayMs)
    if (isExpired) this.#workspaces.delete(workspaceId)
    else this.#set(workspaceId, { untilMs: this.#now() + delayMs, delayMs })
  }

  /** The workspaces to leave out now. */
  list(): Uuid<'workspace'>[] {
    const now = this.#now()
    for (const [workspaceId, { untilMs }] of this.#workspaces)
      if (untilMs + maxDelayMs < now) this.#workspaces.delete(workspaceId)
    return [...this.#workspaces].filter(([, { untilMs }]) => untilMs > now).map(([workspaceId]) => workspaceId)
  }

  #set(workspaceId: Uuid<'workspace'>, entry: { untilMs: number; delayMs: number }): void {
    this.#workspaces.delete(workspaceId)
    this.#workspaces.set(workspaceId, entry)
    if (this.#workspaces.size <= maxWorkspaces) return
    const [earliest] = this.#workspaces.keys()
    this.#workspaces.delete(earliest!)
  }
}
