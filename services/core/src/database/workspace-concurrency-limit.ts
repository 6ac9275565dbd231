import { AsyncLocalStorage } from 'node:async_hooks'
import { DomainError, type ErrorDetails } from '@workspace-wallet/contract'

/**
 * The token of the call that runs, as `role:name`, if the call names its workspace as it likes: it may not exist. Unset for gateways,
 * which act for workspaces that core has checked.
 */
export const callingToken = new AsyncLocalStorage<string>()

export type ConcurrencyLimits = {
  /** Maximum number that run at the same time, over all workspaces. */
  slots: number
  /** The number of these slots that only a workspace with nothing running may take. */
  reservedSlots: number
  /** Maximum number that wait, for each workspace. */
  waitingPerWorkspace: number
  /** Maximum number that wait, over all workspaces. Beyond it, one may wait for each workspace. */
  waiting: number
  /** Maximum time to wait, in milliseconds. */
  waitMs: number
  /** Why, in S002, a call may not wait or has waited too long. */
  reason?: ErrorDetails['S002']['reason']
}

type Waiter = { start: () => void; timer: NodeJS.Timeout }
type Use = { usedMs: number; usedAtMs: number }
/** Who competes for slots: a workspace, or a token with all the workspaces that it names. */
type Caller = Use & { waiting: number; isToken: boolean }
/** A workspace of a caller. */
type Share = Use & { caller: Caller; running: number; waiters: Waiter[] }

/** Used time counts half after this time. */
const halfLifeMs = 10_000
/** Shares are swept when there are more than this. */
const sweepThreshold = 1_000

/**
 * Shares slots among workspaces. A free slot goes to the waiting workspace that has used the least time recently. Time
 * counts and not the number of calls, so that a few long calls count as much as many short ones.
 *
 * All workspaces that a token names (see `callingToken`) compete with the others as one, and among themselves for what this one gets. They
 * leave half of the places to wait to others.
 *
 * `FairQueue` (packages/runtime) serves other work: items that a batch takes many of at once, at the same cost each. It gives each
 * workspace an equal share of a batch, and needs no time. Here, calls run one by one, take from a millisecond to seconds, and keep
 * their slot until they end.
 */
export class WorkspaceConcurrencyLimit {
  readonly #limits: ConcurrencyLimits
  readonly #now: () => number
  readonly #shares = new Map<string, Share>()
  /** By token. A workspace that competes for itself is only in `#shares`. */
  readonly #tokens = new Map<string, Caller>()
  #running = 0
  #waiting = 0
  #sweepAt = sweepThreshold

  /** @param now a monotonic clock, in milliseconds */
  constructor(limits: ConcurrencyLimits, now = () => performance.now()) {
    this.#limits = limits
    this.#now = now
  }

  /**
   * Runs `work` when a slot is free for this workspace.
   *
   * @throws DomainError S002, without running `work`, if too many wait or this one has waited too long
   */
  async run<Result>(workspace: string, work: () => Promise<Result>): Promise<Result> {
    const share = this.#shareOf(workspace)
    if (this.#mayStart(share)) this.#start(share)
    else await this.#wait(share)
    const startedAtMs = this.#now()
    try {
      return await work()
    } finally {
      this.charge(workspace, this.#now() - startedAtMs)
      share.running--
      this.#running--
      this.#startNext()
      this.#sweep()
    }
  }

  /** The time in milliseconds that a workspace has used recently; older use counts less. */
  usedMs(workspace: string): number {
    const share = this.#shares.get(nameOfShare(workspace))
    return share ? this.#usedMsOf(share) : 0
  }

  /** The number of running and waiting calls, and of workspaces with a share. */
  get load(): { running: number; waiting: number; workspaces: number } {
    return { running: this.#running, waiting: this.#waiting, workspaces: this.#shares.size }
  }

  /** Adds to the time in milliseconds that a workspace has used. */
  charge(workspace: string, ms: number): void {
    const share = this.#shareOf(workspace)
    for (const use of [share, share.caller]) {
      use.usedMs = this.#usedMsOf(use) + ms
      use.usedAtMs = this.#now()
    }
  }

  #shareOf(workspace: string): Share {
    const name = nameOfShare(workspace)
    const share = this.#shares.get(name) ?? { ...this.#noUse(), caller: this.#callerNow(), running: 0, waiters: [] }
    this.#shares.set(name, share)
    return share
  }

  #callerNow(): Caller {
    const token = callingToken.getStore()
    const known = token === undefined ? undefined : this.#tokens.get(token)
    const caller = known ?? { ...this.#noUse(), waiting: 0, isToken: token !== undefined }
    if (token !== undefined) this.#tokens.set(token, caller)
    return caller
  }

  #noUse(): Use {
    return { usedMs: 0, usedAtMs: this.#now() }
  }

  #mayStart({ running }: Share): boolean {
    const free = this.#limits.slots - this.#running
    return free > (running === 0 ? 0 : this.#limits.reservedSlots)
  }

  #start(share: Share): void {
    share.running++
    this.#running++
  }

  #wait(share: Share): Promise<void> {
    const { waitMs } = this.#limits
    if (!this.#mayWait(share)) throw this.#tooMany()
    return new Promise((resolve, reject) => {
      const stopWaiting = () => {
        clearTimeout(waiter.timer)
        share.waiters.splice(share.waiters.indexOf(waiter), 1)
        share.caller.waiting--
        this.#waiting--
      }
      const waiter: Waiter = {
        start: () => {
          stopWaiting()
          // Takes the slot now, because the waiter continues only in a later microtask.
          this.#start(share)
          resolve()
        },
        timer: setTimeout(() => {
          stopWaiting()
          reject(this.#tooMany())
        }, waitMs),
      }
      share.waiters.push(waiter)
      share.caller.waiting++
      this.#waiting++
    })
  }

  #mayWait({ waiters, caller }: Share): boolean {
    const { waitingPerWorkspace, waiting } = this.#limits
    if (this.#waiting >= waiting) return caller.waiting === 0
    return waiters.length < waitingPerWorkspace && (!caller.isToken || caller.waiting < Math.max(1, waiting / 2))
  }

  #tooMany(): DomainError<'S002'> {
    const { reason } = this.#limits
    return new DomainError('S002', { retryAfterSeconds: 1, ...(reason && { reason }) })
  }

  #startNext(): void {
    let next: Share | undefined
    for (const share of this.#shares.values())
      if (share.waiters.length > 0 && this.#mayStart(share)) if (!next || this.#isBefore(share, next)) next = share
    next?.waiters[0]?.start()
  }

  #isBefore(share: Share, other: Share): boolean {
    const [one, two] = share.caller === other.caller ? [share, other] : [share.caller, other.caller]
    return this.#usedMsOf(one) < this.#usedMsOf(two)
  }

  #usedMsOf({ usedMs, usedAtMs }: Use): number {
    return usedMs * 2 ** ((usedAtMs - this.#now()) / halfLifeMs)
  }

  #sweep(): void {
    if (this.#shares.size < this.#sweepAt) return
    for (const [workspace, share] of this.#shares)
      if (share.running === 0 && share.waiters.length === 0 && this.#usedMsOf(share) < 1) this.#shares.delete(workspace)
    this.#sweepAt = Math.max(sweepThreshold, 2 * this.#shares.size)
  }
}

function nameOfShare(workspace: string): string {
  const token = callingToken.getStore()
  return token === undefined ? workspace : `${token} ${workspace}`
}
