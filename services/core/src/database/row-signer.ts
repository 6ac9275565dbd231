import type { KeyObject } from 'node:crypto'
import type { EventArgs, EventSubscriber } from '@mikro-orm/core'
import { type IdKind, Refusal, uuidFromId } from '@workspace-wallet/contract'
import { ApiKey } from '../api-keys/entities.ts'
import { Ledger } from '../ledger/entities.ts'
import { Wallet } from '../wallets/entities.ts'
import { Member, Workspace } from '../workspaces/entities.ts'
import { apiKeyMac, ledgerMac, memberMac, walletMac, workspaceMac } from './signed-rows.ts'

type SignedEntity = ApiKey | Ledger | Member | Wallet | Workspace

/**
 * Signs what the unit of work writes (see signed-rows.ts), so that no operation can forget it. A row that was changed
 * outside the service is not signed again by a change of something else in it: that would make it genuine.
 */
export class RowSigner implements EventSubscriber<SignedEntity> {
  readonly #chainKey: KeyObject

  constructor(chainKey: KeyObject) {
    this.#chainKey = chainKey
  }

  getSubscribedEntities() {
    return [ApiKey, Ledger, Member, Wallet, Workspace]
  }

  onLoad({ entity }: EventArgs<SignedEntity>): void {
    if (macOf(this.#chainKey, entity).equals(entity.mac)) genuine.add(entity)
  }

  beforeCreate({ entity }: EventArgs<SignedEntity>): void {
    entity.mac = macOf(this.#chainKey, entity)
    genuine.add(entity)
  }

  beforeUpdate({ entity, changeSet }: EventArgs<SignedEntity>): void {
    if (Object.keys(changeSet!.payload).every(column => unsigned.has(column))) return
    if (!isGenuine(entity) && !replaced.has(entity))
      throw new Refusal(
        'NOT_ALLOWED',
        `The row of ${nameOf(entity)} was modified outside the service: run ledger verify.`,
      )
    entity.revision += 1
    entity.mac = macOf(this.#chainKey, entity)
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

function macOf(key: KeyObject, entity: SignedEntity): Buffer {
  if (entity instanceof Wallet)
    return walletMac(key, {
      ...entity,
      workspaceId: uuidOf('workspace', entity.workspaceId),
      id: uuidOf('wallet', entity.id),
      number: entity.number ?? null,
      head: Buffer.from(entity.head),
    })
  if (entity instanceof Ledger)
    return ledgerMac(key, {
      ...entity,
      workspaceId: uuidOf('workspace', entity.workspaceId),
      haltReason: entity.haltReason ?? null,
    })
  if (entity instanceof Workspace)
    return workspaceMac(key, {
      ...entity,
      id: uuidOf('workspace', entity.id),
      deletedAt: entity.deletedAt ?? null,
    })
  if (entity instanceof Member)
    return memberMac(key, {
      ...entity,
      workspaceId: uuidOf('workspace', entity.workspaceId),
      removedAt: entity.removedAt ?? null,
    })
  return apiKeyMac(key, {
    ...entity,
    id: uuidOf('apiKey', entity.id),
    workspaceId: uuidOf('workspace', entity.workspaceId),
    previousSecret: entity.previousSecret ?? null,
    previousSecretUntil: entity.previousSecretUntil ?? null,
    expiresAt: entity.expiresAt ?? null,
    deletedAt: entity.deletedAt ?? null,
  })
}

function uuidOf(kind: IdKind, id: string): string {
  return uuidFromId(kind, id)!
}

function nameOf(entity: SignedEntity): string {
  if (entity instanceof Member) return entity.userId
  return entity instanceof Ledger ? entity.workspaceId : entity.id
}
