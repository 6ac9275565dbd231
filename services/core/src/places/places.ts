import type { KeyObject } from 'node:crypto'
import { DomainError, type Id, uuidFromId } from '@workspace-wallet/contract'
import { Counts, Rotation, type SampledLog } from '@workspace-wallet/runtime'
import { batched } from '../database/batched.ts'
import type { Queryable } from '../database/statement.ts'
import { findHidden, notHere } from './claims.ts'
import { askAll } from './in-time.ts'
import { findPlaced, findPlacedTransfers, type PlacedKind, type PlacedRow } from './queries.ts'

/** One schema of one database. `name`: for people and metrics. `number`: from 0, in the order of the URLs. */
export interface Place {
  readonly name: string
  readonly number: number
  readonly reads: Queryable
  readonly chainKey: KeyObject
  /** The polls for changes: whether they are recent enough, and how often they have found that workspaces move. */
  readonly access: { readonly isCurrent: boolean; readonly moves: number }
}

/** The token of a call. Look-ups for one keep none for others waiting: a call may name any number of objects that do not exist. */
export type Asker = { role: string; name: string; isOperator?: boolean }

/** Where an object is. `moves`: of the place, before it was asked. */
type Remembered<Each> = { place: Each; moves: number }

/** How many look-ups of a token may wait for a place. Otherwise so many could wait that all of them are late, or fill the memory. */
const waitingLimit = 4_096
/** One for all: its stack trace would cost as much as a look-up. */
const tooManyWait = new DomainError('S002', { retryAfterSeconds: 1 })

/** The objects whose place is remembered. */
const rememberedObjects = 100_000

/**
 * The places that this process serves. A workspace and everything that belongs to it is in one of them, and no transaction touches
 * two. The first one is home: it also has what belongs to no workspace, which are operators, instances, refused calls and
 * generations of nonces.
 *
 * Only core can write a row by which a place has a claim on a workspace (see claims.ts). So what somebody writes into the database of one
 * place, copies from others included, changes nothing about the workspaces of the others.
 */
export class Places<Each extends Place = Place> {
  readonly all: readonly [Each, ...Each[]]
  /** Whether the installation has others that this process does not serve. */
  readonly isIncomplete: boolean
  readonly #log: SampledLog
  readonly #remembered = new Map<string, Remembered<Each>>()
  /** How many look-ups of each token wait for each place, also those that are late. */
  readonly #waiting = new Counts()
  /** Of tokens. All calls whose look-ups share a statement are answered at once. */
  readonly #turns = new Rotation()

  constructor(
    all: readonly [Each, ...Each[]],
    log: SampledLog,
    { isIncomplete = false }: { isIncomplete?: boolean } = {},
  ) {
    this.all = all
    this.isIncomplete = isIncomplete
    this.#log = log
  }

  get home(): Each {
    return this.all[0]
  }

  /**
   * The place of an object. If its place is not known yet, or a workspace has begun to move away from there since, all places are asked
   * at once. A workspace does not change in another place before every core has noticed that it moves (see moves/operations.ts).
   *
   * @returns if no place has a genuine row of the object, one that has another row; home without any
   * @throws DomainError S002 if the places that answer in time only have rows of an object that is elsewhere, or none, and another one does
   *   not answer; if too many look-ups of the token wait
   */
  async of(kind: PlacedKind, id: string, by: Asker): Promise<Each> {
    const uuid = this.all.length > 1 ? uuidFromId(kind, id) : null
    if (uuid === null) return this.home
    const remembered = this.#remembered.get(uuid)
    if (remembered && isValid(remembered)) return remembered.place
    const moves = this.all.map(({ access }) => access.moves)
    const answers = await askAll(
      this.all,
      async place => ({ place, row: await this.#lookUp(place, by, token => lookUps[kind](place, uuid, token)) }),
      found => found.some(({ row }) => row !== null && isUsable(row)),
    )
    await this.#turns.next(nameOfToken(by), this)
    const found = answers.flatMap(answer => (answer?.row ? { place: answer.place, row: answer.row } : []))
    const haveAllAnswered = !answers.includes(null)
    const [strongest] = found.filter(({ row }) => isUsable(row)).sort((a, b) => b.row.claim - a.row.claim)
    if (!strongest) {
      this.#requireNowhere(found, haveAllAnswered, { kind, id })
      return found[0]?.place ?? this.home
    }
    const { place, row } = strongest
    // A place that has not answered may have the stronger claim. What leaves a place is there only until it has arrived.
    const isLeaving = row.claim > 0 && row.claim % 2 === 1
    if (haveAllAnswered && !isLeaving) this.#remember(uuid, { place, moves: moves[place.number]! })
    return place
  }

  /** @throws DomainError S002 if the object may be somewhere although no place has a claim on it */
  #requireNowhere(
    found: readonly { row: PlacedRow }[],
    haveAllAnswered: boolean,
    object: { kind: string; id: string },
  ): void {
    const isElsewhere = found.some(({ row }) => row.isGenuine)
    if (haveAllAnswered && isElsewhere) {
      const message = 'a workspace is not in any of the places that have its rows: is another place restored?'
      const summary = `${message}: more calls`
      this.#log.write('placement', { level: 'error', fields: object, message, summary })
    }
    if (!haveAllAnswered || isElsewhere) throw new DomainError('S002', { retryAfterSeconds: 1 })
  }

  /**
   * The places that have a transfer with this ID. Callers of core can generate the ID of a transfer, so there may be several, and nothing
   * is remembered: another place may have the ID later.
   *
   * @throws DomainError S002 if no place has the transfer, and one does not answer in time; if too many look-ups of the token wait
   */
  async ofTransfer(id: Id<'transfer'>, by: Asker): Promise<readonly Each[]> {
    if (this.all.length === 1) return this.all
    const uuid = uuidFromId('transfer', id)
    const answers = await askAll(this.all, async place => ({
      place,
      hasIt: (await this.#lookUp(place, by, token => hasTransfer(place, uuid, token))) !== null,
    }))
    await this.#turns.next(nameOfToken(by), this)
    const having = answers.flatMap(answer => (answer?.hasIt ? answer.place : []))
    if (having.length === 0 && answers.includes(null)) throw new DomainError('S002', { retryAfterSeconds: 1 })
    return having
  }

  async #lookUp<Row>({ number }: Each, by: Asker, read: (token: string) => Promise<Row>): Promise<Row> {
    const token = nameOfToken(by)
    const key = `${number} ${token}`
    if (this.#waiting.of(key) >= waitingLimit) throw tooManyWait
    this.#waiting.add(key)
    try {
      return await read(token)
    } finally {
      this.#waiting.remove(key)
    }
  }

  #remember(uuid: string, remembered: Remembered<Each>): void {
    if (this.#remembered.size >= rememberedObjects) this.#remembered.clear()
    this.#remembered.set(uuid, remembered)
  }
}

/** Unique: an operator may have the name of a service token, and tokens of two roles the same name. */
export function nameOfToken({ role, name, isOperator }: Asker): string {
  return `${isOperator ? 'operator' : role}:${name}`
}

function isValid({ place: { access }, moves }: Remembered<Place>): boolean {
  return access.isCurrent && access.moves === moves
}

/** Whether a place may have the object that a row of it is of. */
function isUsable({ isGenuine, claim }: PlacedRow): boolean {
  return isGenuine && claim !== notHere
}

const nameOf = { key: (uuid: string) => uuid, row: ({ id }: { id: string }) => id }

const lookUp = (kind: PlacedKind) =>
  batched({
    readMany: async (place: Place, uuids: readonly string[]) => preferUsable(await findPlaced[kind](place, uuids)),
    nameOf,
    resultOf: (_, row) => row,
    isSerial: true,
  })

/** One row of each object: other workspaces of the place may have forged ones with the same ID. */
function preferUsable(rows: readonly PlacedRow[]): PlacedRow[] {
  const byId = new Map<string, PlacedRow>()
  for (const row of rows) {
    const known = byId.get(row.id)
    if (!known || (isUsable(row) && !isUsable(known))) byId.set(row.id, row)
  }
  return [...byId.values()]
}

const lookUps = {
  workspace: lookUp('workspace'),
  apiKey: lookUp('apiKey'),
  wallet: lookUp('wallet'),
  webhook: lookUp('webhook'),
}

const hasTransfer = batched({
  readMany: async (place: Place, uuids: readonly string[]) =>
    findPlacedTransfers(place.reads, uuids, await findHidden(place.reads, place)),
  nameOf,
  resultOf: () => true,
  isSerial: true,
})
