import type { KeyObject } from 'node:crypto'
import type { EventArgs, EventSubscriber } from '@mikro-orm/core'
import { AdminError } from '@workspace-wallet/contract'

/** An entity whose row is signed (see signed-rows.ts); the columns come from `signature()`. */
export type SignedEntity = {
  revision: number
  mac: Uint8Array
  /** The MAC of the row as the entity says it is. */
  macUnder(chainKey: KeyObject): Buffer
}

/**
 * Signs what the unit of work writes (see signed-rows.ts), so that no operation can forget it. A row that was changed
 * outside the service is not signed again by a change of something else in it: that would make it genuine.
 */
export class RowSigner implements EventSubscriber {
  readonly #chainKey: KeyObject

  constructor(chainKey: KeyObject) {
    this.#chainKey = chainKey
  }

  onLoad({ entity }: EventArgs<object>): void {
    if (isSigned(entity) && entity.macUnder(this.#chainKey).equals(entity.mac)) genuine.add(entity)
  }

  beforeCreate({ entity }: EventArgs<object>): void {
    if (!isSigned(entity)) return
    entity.mac = entity.macUnder(this.#chainKey)
    genuine.add(entity)
  }

  beforeUpdate({ entity, changeSet }: EventArgs<object>): void {
    if (!isSigned(entity)) return
    if (Object.keys(changeSet!.payload).every(column => unsigned.has(column))) return
    if (!isGenuine(entity) && !replaced.has(entity))
      throw new AdminError(
        'NOT_ALLOWED',
        `The row of ${nameOf(entity)} was modified outside the service: run ledger verify.`,
      )
    entity.revision += 1
    entity.mac = entity.macUnder(this.#chainKey)
    genuine.add(entity)
  }
}

const unsigned = new Set(['lastUsedAt', 'accessRevision'])
const genuine = new WeakSet<SignedEntity>()
const replaced = new WeakSet<SignedEntity>()

/** Whether a core wrote this row. */
export function isGenuine(entity: SignedEntity): boolean {
  return genuine.has(entity)
}

/** Says that what a row says now leaves nothing in it that could do harm: it is signed, whoever wrote it before. */
export function replaceRow(entity: SignedEntity): void {
  replaced.add(entity)
  // Written also when nothing else of it changes.
  if (!isGenuine(entity)) entity.mac = Buffer.of(entity.mac.length === 0 ? 1 : 0)
}

function isSigned(entity: object): entity is SignedEntity {
  return 'macUnder' in entity
}

function nameOf(entity: SignedEntity & { id?: string; userId?: string; workspaceId?: string }): string | undefined {
  return entity.userId ?? entity.id ?? entity.workspaceId
}
