import type { KeyObject } from 'node:crypto'
import { DomainError, type Id, uuidFromId } from '@workspace-wallet/contract'
import type { Log } from '@workspace-wallet/runtime'
import { batched } from '../database/batched.ts'
import type { Queryable } from '../database/statement.ts'
import { claimIn, findHidden, notHere } from './claims.ts'
import { findPlaced, findPlacedTransfers, type PlacedKind } from './queries.ts'

/** One schema of one database. `name`: for people and metrics. `number`: from 0, in the order of the URLs. */
export interface Place {
  readonly name: string
  readonly number: number
  readonly reads: Queryable
  readonly chainKey: KeyObject
  /** The polls for changes: whether they are recent enough, and how often they have found that workspaces move. */
  readonly access: { readonly isCurrent: boolean; readonly moves: number }
}

/** Where an object is. `moves`: of the place, before it was asked. */
type Remembered<Each> = { place: Each; moves: number }

/** The objects whose place is remembered. */
const rememberedObjects = 100_000

/**
 * The places that this process serves. A workspace and everything that belongs to it is in one of them, and no transaction touches
 * two. The first one is home: it also has what belongs to no workspace, which are operators, instances, refused calls and
 * generations of nonces.
 */
export class Places<Each extends Place = Place> {
  readonly all: readonly [Each, ...Each[]]
  readonly #log: Log
  readonly #remembered = new Map<string, Remembered<Each>>()

  constructor(all: readonly [Each, ...Each[]], log: Log) {
    this.all = all
    this.#log = log
  }

  get home(): Each {
    return this.all[0]
  }

  /**
   * The place of an object. If its place is not known yet, or a workspace has begun to move away from there since, all places are asked
   * at once. A workspace does not change in another place before every core has noticed that it moves (see moves/operations.ts).
   *
   * @returns home if no place has the object
   * @throws DomainError S001 if two places have it, so that neither can be trusted; S002 if it has left the only one that has it; the
   *   error of a place that did not answer, if no other one has the object
   */
  async of(kind: PlacedKind, id: string): Promise<Each> {
    const uuid = this.all.length > 1 ? uuidFromId(kind, id) : null
    if (uuid === null) return this.home
    const remembered = this.#remembered.get(uuid)
    if (remembered && isValid(remembered)) return remembered.place
    const moves = this.all.map(({ access }) => access.moves)
    const { claims, haveAllAnswered } = await this.#ask(place => claimOn[kind](place, uuid))
    const strongest = Math.max(notHere, ...claims.values())
    const having = [...claims.keys()].filter(place => claims.get(place) === strongest)
    if (claims.size > 0 && strongest === notHere) {
      this.#log.error({ kind, id }, 'a workspace has left the only place that has it: is another place restored?')
      throw new DomainError('S002', { retryAfterSeconds: 1 })
    }
    if (having.length > 1) {
      const places = having.map(({ name }) => name)
      this.#log.fatal({ kind, id, places }, 'an object was copied to another place: neither is used; remove the copy')
      throw new DomainError('S001')
    }
    const [place] = having
    if (!place) return this.home
    // With a place that has not answered, another one may have it too. What leaves a place is there only until it has arrived.
    const isLeaving = strongest > 0 && strongest % 2 === 1
    if (haveAllAnswered && !isLeaving) this.#remember(uuid, { place, moves: moves[place.number]! })
    return place
  }

  /**
   * The places that have a transfer with this ID. Callers of core can generate the ID of a transfer, so there may be several, and nothing
   * is remembered: another place may have the ID later.
   *
   * @throws the error of a place that did not answer, if no other one has the transfer
   */
  async ofTransfer(id: Id<'transfer'>): Promise<readonly Each[]> {
    if (this.all.length === 1) return this.all
    const { claims } = await this.#ask(place => hasTransfer(place, uuidFromId('transfer', id)))
    return [...claims.keys()]
  }

  /** The places that have an object, with their claims. @throws the error of a place that did not answer, if no other one has the object */
  async #ask(claimIn: (place: Each) => Promise<number | null>) {
    const answers = await Promise.allSettled(this.all.map(claimIn))
    const claims = new Map<Each, number>()
    for (const [index, place] of this.all.entries()) {
      const answer = answers[index]!
      if (answer.status === 'fulfilled' && answer.value !== null) claims.set(place, answer.value)
    }
    const fault = answers.find(({ status }) => status === 'rejected')
    if (fault && claims.size === 0) throw (fault as PromiseRejectedResult).reason
    return { claims, haveAllAnswered: !fault }
  }

  #remember(uuid: string, remembered: Remembered<Each>): void {
    if (this.#remembered.size >= rememberedObjects) this.#remembered.clear()
    this.#remembered.set(uuid, remembered)
  }
}

function isValid({ place: { access }, moves }: Remembered<Place>): boolean {
  return access.isCurrent && access.moves === moves
}

const lookUp = (kind: PlacedKind) =>
  batched({
    readMany: ({ reads }: Place, uuids: readonly string[]) => findPlaced(reads, kind, uuids),
    nameOf: { key: (uuid: string) => uuid, row: ({ id }) => id },
    resultOf: ({ chainKey, number }, { move }) => claimIn(chainKey, number, move),
  })

const claimOn = {
  workspace: lookUp('workspace'),
  apiKey: lookUp('apiKey'),
  wallet: lookUp('wallet'),
  webhook: lookUp('webhook'),
}

const hasTransfer = batched({
  readMany: async (place: Place, uuids: readonly string[]) =>
    findPlacedTransfers(place.reads, uuids, await findHidden(place.reads, place)),
  nameOf: { key: (uuid: string) => uuid, row: ({ id }) => id },
  resultOf: () => 0,
})
