import { DomainError, type Id, uuidFromId } from '@workspace-wallet/contract'
import type { Log } from '@workspace-wallet/runtime'
import { batched } from '../database/batched.ts'
import type { Queryable } from '../database/statement.ts'
import { findPlaced, type PlacedKind } from './queries.ts'

/** One schema of one database. `name`: for people and metrics. */
export interface Place {
  readonly name: string
  readonly reads: Queryable
}

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
  readonly #remembered = new Map<string, Each>()

  constructor(all: readonly [Each, ...Each[]], log: Log) {
    this.all = all
    this.#log = log
  }

  get home(): Each {
    return this.all[0]
  }

  /**
   * The place of an object. If its place is not known yet, all places are asked at once.
   *
   * @returns home if no place has the object
   * @throws DomainError S001 if two places have it, so that neither can be trusted; the error of a place that did not answer, if no
   *   other one has the object
   */
  async of(kind: Exclude<PlacedKind, 'transfer'>, id: string): Promise<Each> {
    const uuid = this.all.length > 1 ? uuidFromId(kind, id) : null
    if (uuid === null) return this.home
    const remembered = this.#remembered.get(uuid)
    if (remembered) return remembered
    const { having, haveAllAnswered } = await this.#ask(kind, uuid)
    if (having.length > 1) {
      const places = having.map(({ name }) => name)
      this.#log.fatal({ kind, id, places }, 'an object was copied to another place: neither is used; remove the copy')
      throw new DomainError('S001')
    }
    const [place] = having
    if (!place) return this.home
    // With a place that has not answered, another one may have it too.
    if (haveAllAnswered) this.#remember(uuid, place)
    return place
  }

  /**
   * The places that have a transfer with this ID. Callers of core can generate the ID of a transfer, so there may be several, and nothing
   * is remembered: another place may have the ID later.
   *
   * @throws the error of a place that did not answer, if no other one has the transfer
   */
  async ofTransfer(id: Id<'transfer'>): Promise<readonly Each[]> {
    return this.all.length > 1 ? (await this.#ask('transfer', uuidFromId('transfer', id))).having : this.all
  }

  /** @throws the error of a place that did not answer, if no other one has the object */
  async #ask(kind: PlacedKind, uuid: string): Promise<{ having: Each[]; haveAllAnswered: boolean }> {
    const answers = await Promise.allSettled(this.all.map(place => has[kind](place, uuid)))
    const having = this.all.filter((_, index) => {
      const answer = answers[index]!
      return answer.status === 'fulfilled' && answer.value
    })
    const fault = answers.find(({ status }) => status === 'rejected')
    if (fault && having.length === 0) throw (fault as PromiseRejectedResult).reason
    return { having, haveAllAnswered: !fault }
  }

  #remember(uuid: string, place: Each): void {
    if (this.#remembered.size >= rememberedObjects) this.#remembered.clear()
    this.#remembered.set(uuid, place)
  }
}

const lookUp = (kind: PlacedKind) =>
  batched({
    readMany: ({ reads }: Place, uuids: readonly string[]) => findPlaced(reads, kind, uuids),
    nameOf: { key: (uuid: string) => uuid, row: ({ id }) => id },
    resultOf: () => true,
  })

const has = {
  workspace: lookUp('workspace'),
  apiKey: lookUp('apiKey'),
  transfer: lookUp('transfer'),
  wallet: lookUp('wallet'),
  webhook: lookUp('webhook'),
}
