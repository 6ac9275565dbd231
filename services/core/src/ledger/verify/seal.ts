import type { KeyObject } from 'node:crypto'
import { type SealFindings, type SealPart, sealPart, type UploadedSeal, uuidFromId } from '@workspace-wallet/contract'
import { isGenuine } from '../checkpoints/checkpoint.ts'
import { uploadedInOrder } from '../checkpoints/queries.ts'
import type { Snapshot } from './snapshot.ts'

/** How far a wallet's chain had come when it was sealed. Ids are UUIDs. */
export type SealedHead = { workspaceId: string; walletId: string; sequence: number; head: Buffer }

/**
 * Reads the seal that was uploaded for a verification, in the order of wallet keys: the order of the replay, so that
 * the two are compared side by side, in constant memory. What the database gives back is believed as far as it is
 * signed: a part that is missing, changed, out of place or of another seal ends the reading with a fault.
 */
export class UploadedSealReader {
  readonly findings: SealFindings
  readonly #seal: UploadedSeal
  readonly #snapshot: Snapshot
  readonly #chainKey: KeyObject

  constructor(snapshot: Snapshot, chainKey: KeyObject, seal: UploadedSeal) {
    this.#snapshot = snapshot
    this.#chainKey = chainKey
    this.#seal = seal
    this.findings = { sealId: seal.sealId, sealedAt: null, workspaceId: null, wallets: 0, fault: null }
  }

  async *heads(): AsyncGenerator<SealedHead[]> {
    let due = 0
    let isLast = false
    for await (const contents of uploadedInOrder(this.#snapshot, this.#seal.uploadId))
      for (const content of contents) {
        const part = parsePart(content)
        const isDue = part?.part === due && part.sealId === this.#seal.sealId && !isLast
        if (!isDue || !isGenuine(this.#chainKey, part)) return this.#fail()
        due++
        isLast = part.last
        this.findings.sealedAt = part.sealedAt
        this.findings.workspaceId = part.workspaceId
        this.findings.wallets += part.chains.length
        yield part.chains.map(toHead)
      }
    if (!isLast) this.#fail()
  }

  #fail(): void {
    this.findings.fault = 'what was uploaded of it was changed in the database while it was compared'
  }
}

function parsePart(content: string): SealPart | null {
  try {
    return sealPart.parse(JSON.parse(content))
  } catch {
    return null
  }
}

function toHead({ workspaceId, walletId, sequence, head }: SealPart['chains'][number]): SealedHead {
  return {
    workspaceId: uuidFromId('workspace', workspaceId)!,
    walletId: uuidFromId('wallet', walletId)!,
    sequence,
    head: Buffer.from(head, 'hex'),
  }
}
