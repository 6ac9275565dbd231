import type { KeyObject } from 'node:crypto'
import type { EventArgs, EventSubscriber } from '@mikro-orm/core'
import { AdminError } from '@workspace-wallet/contract'

/** An entity whose row is signed (see tables/table.ts); the columns come from `signature()`. */
export type SignedEntity = {
  revision: number
  mac: Uint8Array
  /** The MAC of the row with the current values of the entity. */
  macUnder(chainKey: KeyObject): Buffer
}

/**
 * Signs every row that the unit of work writes (see tables/table.ts). Rejects an update of a row that was modified outside the
 * service, because signing it would make the modification genuine; `replaceRow` permits it.
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
    if (!replaced.has(entity)) requireGenuine(entity)
    entity.revision += 1
    entity.mac = entity.macUnder(this.#chainKey)
    genuine.add(entity)
  }
}

const unsigned = new Set([
  // Of API keys.
  'lastUsedAt',
  'accessRevision',
  // Of webhooks.
  'position',
  'generation',
  'leasedGeneration',
  'leasedUntil',
  'nextAttemptAt',
  'failures',
  'failingSince',
  'lastStatus',
  'lastError',
  'lastAttemptAt',
])
const genuine = new WeakSet<SignedEntity>()
const replaced = new WeakSet<SignedEntity>()

/** Whether the row had a valid MAC when it was loaded, or was created here. */
export function isGenuine(entity: SignedEntity): boolean {
  return genuine.has(entity)
}

/** @throws AdminError if the row was modified outside the service: signing a change of it would make it genuine */
export function requireGenuine(entity: SignedEntity): void {
  if (isGenuine(entity)) return
  throw new AdminError(
    'NOT_ALLOWED',
    `The row of ${nameOf(entity)} was modified outside the service: run ledger verify.`,
  )
}

/** Permits signing a modified row. Only for changes after which no modified value can have an effect. */
export function replaceRow(entity: SignedEntity): void {
  replaced.add(entity)
  // Marks the entity as changed, so that it is written even if no other value changes.
  if (!isGenuine(entity)) entity.mac = Buffer.of(entity.mac.length === 0 ? 1 : 0)
}

function isSigned(entity: object): entity is SignedEntity {
  return 'macUnder' in entity
}

function nameOf(entity: SignedEntity & { id?: string; userId?: string; workspaceId?: string }): string | undefined {
  return entity.userId ?? entity.id ?? entity.workspaceId
}
