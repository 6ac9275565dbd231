/** Moves a workspace to another place with its whole history. docs/scale.md describes the steps, and what a restart finds. */
import { setTimeout } from 'node:timers/promises'
import { type Move, type Placement, type Uuid, uuidFromId } from '@workspace-wallet/contract'
import { type CoreClient, verifyLedger } from '@workspace-wallet/core-client'
import pg from 'pg'
import { startupOf } from '../../../services/core/src/database/session-settings.ts'
import { isUnavailable } from '../sentences.ts'
import { Copier, nothingCopied, removeRows, type Side } from './copy.ts'

export type MoveOptions = {
  workspaceId: string
  /** The number of the place where it goes. */
  place: number
  /** The URLs of the roles that own the tables of all places, in their order. */
  ownerUrls: readonly string[]
  reason?: string | undefined
  /** `total`: null if it is not known. */
  onProgress?: (done: number, total: number | null, what: string) => void
}

/** `stoppedMs`: for how long the workspace took no changes; null if another run has stopped it. */
export type Moved = { workspaceId: string; place: number; stoppedMs: number | null }

/** While more than so many events are not copied, the workspace is not stopped. */
const fewEvents = 2_000
const maxPasses = 20

/**
 * Moves a workspace. It takes no changes for a few seconds. The same call, from anywhere, continues a move that was interrupted, and
 * finds one that has ended.
 *
 * @throws Error that says why the workspace cannot move, or that another call moves it
 */
export async function moveWorkspace(core: CoreClient, options: MoveOptions): Promise<Moved> {
  return withTarget(options, async mover => {
    const { workspaceId, place, reason } = options
    let found = await repeated(() => core.moves.find.query({ workspaceId }))
    if (found.move?.phase === 'CANCELING')
      found = await repeated(() => core.moves.cancel.mutate({ workspaceId, reason }))
    let stoppedMs: number | null = null
    if (found.place !== place) {
      if (!isUnderWay(found.move)) await mover.removeLeftovers(core, found, place)
      found = await repeated(() => core.moves.begin.mutate({ workspaceId, place, reason }))
      stoppedMs = await mover.copyAndArrive(core, found)
      found = await repeated(() => core.moves.find.query({ workspaceId }))
    }
    await finish(core, mover, found, options)
    return { workspaceId, place, stoppedMs }
  })
}

/**
 * Cancels a move that has not arrived: the workspace goes on where it is, and its copy is removed.
 *
 * @throws Error if it does not move
 */
export async function cancelMove(core: CoreClient, options: Omit<MoveOptions, 'place'>): Promise<Moved> {
  const { workspaceId, reason } = options
  const { move } = await repeated(() => core.moves.find.query({ workspaceId }))
  const isCanceled = move?.phase === 'CANCELING'
  if (!isUnderWay(move) && !isCanceled) throw new Error(`${workspaceId} does not move.`)
  return withTarget({ ...options, place: isCanceled ? move!.from : move!.to }, async mover => {
    const { place } = await repeated(() => core.moves.cancel.mutate({ workspaceId, reason }))
    await mover.remove()
    return { workspaceId, place, stoppedMs: null }
  })
}

const attempts = 60
/** The error of PostgreSQL after `lock_timeout`. */
const lockTimedOut = '55P03'

/** Every call finds what an earlier one has done, so it can be repeated while core is not available, or after its answer was lost. */
async function repeated<Result>(call: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt++)
    try {
      return await call()
    } catch (error) {
      if (attempt === attempts || !isUnavailable(error)) throw error
      await setTimeout(1_000)
    }
}

const isUnderWay = (move: Move | null) => move?.phase === 'COPYING' || move?.phase === 'STOPPED'

/** Verifies the workspace where it has arrived, and then removes the rows that it has left. */
async function finish(core: CoreClient, mover: Mover, { move }: Placement, options: MoveOptions): Promise<void> {
  const { workspaceId, place } = options
  if (move?.phase !== 'ARRIVED' || move.to !== place) return
  const { now, move: ended } = await repeated(() => core.moves.arrive.mutate({ workspaceId }))
  await mover.requireSound(core)
  await setTimeout(ended!.mayRemoveAt!.getTime() - now.getTime())
  await mover.remove(move.from)
}

/** Runs an action that only one call at a time may run for a workspace. */
async function withTarget<Result>(options: MoveOptions, action: (mover: Mover) => Promise<Result>): Promise<Result> {
  const mover = new Mover(options)
  try {
    await mover.lock()
    return await action(mover)
  } finally {
    await mover.close()
  }
}

class Mover {
  readonly #options: MoveOptions
  readonly #workspaceId: Uuid<'workspace'>
  readonly #sides = new Map<number, Promise<Side>>()

  constructor(options: MoveOptions) {
    const workspaceId = uuidFromId('workspace', options.workspaceId)
    if (workspaceId === null) throw new Error(`${options.workspaceId} is not the ID of a workspace.`)
    this.#options = options
    this.#workspaceId = workspaceId
  }

  /** Until the connection ends. @throws Error if another call has the lock */
  async lock(): Promise<void> {
    const target = await this.#side(this.#options.place)
    // Core ends sessions of its own role that somebody waits for.
    await target.query(`set lock_timeout = '5s'`)
    try {
      await target.query('select pg_advisory_lock(hashtextextended($1, 0))', [`move ${this.#workspaceId}`])
    } catch (error) {
      if ((error as { code?: string }).code !== lockTimedOut) throw error
      throw new Error(`Another command moves ${this.#options.workspaceId}: wait until it ends.`)
    }
    await target.query('reset lock_timeout')
  }

  async close(): Promise<void> {
    for (const side of this.#sides.values()) await side.then(client => client.end()).catch(() => {})
  }

  /** Returns for how long the workspace was stopped; null if it was stopped before. */
  async copyAndArrive(core: CoreClient, { move }: Placement): Promise<number | null> {
    const { workspaceId, reason, onProgress } = this.#options
    const { from, to, phase } = move!
    const copier = new Copier(await this.#side(from), await this.#side(to), this.#workspaceId)
    const onCopied = (done: number, total: number) => onProgress?.(done, total, 'events copied')
    let copied = nothingCopied
    if (phase === 'COPYING') {
      await this.requireSound(core)
      for (let pass = 1, behind = Number.POSITIVE_INFINITY; pass <= maxPasses && behind > fewEvents; pass++) {
        const before = copied.position
        copied = await copier.copy(copied, onCopied)
        behind = copied.position - before
      }
    }
    const stoppedAt = performance.now()
    const stopped = await repeated(() => core.moves.stop.mutate({ workspaceId, reason }))
    copied = await copier.copy(copied, onCopied)
    await copier.finish()
    const waitMs = stopped.move!.mayArriveAt!.getTime() - stopped.now.getTime()
    await setTimeout(Math.max(0, waitMs - (performance.now() - stoppedAt)))
    await this.#arrive(core)
    return phase === 'COPYING' ? performance.now() - stoppedAt : null
  }

  /** The wait was counted by another clock than that of the place. */
  async #arrive(core: CoreClient): Promise<void> {
    const { workspaceId, reason } = this.#options
    for (;;) {
      const { now, move } = await repeated(() => core.moves.find.query({ workspaceId }))
      if (move!.phase !== 'STOPPED' || now >= move!.mayArriveAt!) break
      await setTimeout(move!.mayArriveAt!.getTime() - now.getTime())
    }
    await repeated(() => core.moves.arrive.mutate({ workspaceId, reason }))
  }

  /** @throws Error if the workspace has violations where it is now */
  async requireSound(core: CoreClient): Promise<void> {
    const { workspaceId, onProgress } = this.#options
    const report = await repeated(() =>
      verifyLedger(core, {
        workspaceId,
        onProgress: progress => {
          if (progress.kind === 'flows') onProgress?.(progress.flows, progress.totalFlows, 'flows verified')
        },
      }),
    )
    if (!report.ok) throw new Error(`${workspaceId} has violations, and does not go on: run ledger verify.`)
  }

  /** What an earlier move from there has left, if it was interrupted. */
  async removeLeftovers(core: CoreClient, { move, now }: Placement, place: number): Promise<void> {
    if (move?.phase !== 'ARRIVED' || move.from !== place) return
    const { workspaceId } = this.#options
    const ended =
      move.mayRemoveAt ?? (await repeated(() => core.moves.arrive.mutate({ workspaceId }))).move!.mayRemoveAt!
    await setTimeout(Math.max(0, ended.getTime() - now.getTime()))
    await this.remove()
  }

  async remove(place = this.#options.place): Promise<void> {
    const { onProgress } = this.#options
    await removeRows(await this.#side(place), this.#workspaceId, rows => onProgress?.(rows, null, 'rows removed'))
  }

  #side(place: number): Promise<Side> {
    const known = this.#sides.get(place) ?? openSide(this.#options.ownerUrls, place)
    this.#sides.set(place, known)
    return known
  }
}

/** Two places that are compared have values in the same form. */
const settings = {
  lock_timeout: '10s',
  statement_timeout: '0',
  transaction_timeout: '0',
  idle_in_transaction_session_timeout: '60s',
  client_connection_check_interval: '1s',
  work_mem: '64MB',
}

async function openSide(ownerUrls: readonly string[], place: number): Promise<Side> {
  const url = ownerUrls[place]
  if (url === undefined)
    throw new Error(
      `There is no URL for place ${place}: MIGRATION_DATABASE_URLS needs one for each place, in the order of DATABASE_URLS.`,
    )
  const client = new pg.Client({ ...startupOf(url, settings), application_name: 'workspace move', keepAlive: true })
  // The pending query fails too.
  client.on('error', () => {})
  await client.connect()
  return client
}
