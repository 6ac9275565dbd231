import type { KeyObject } from 'node:crypto'
import {
  type SealedRow,
  type SealFindings,
  type SealPart,
  sealPart,
  type UploadedSeal,
  uuidFromId,
} from '@workspace-wallet/contract'
import type { Snapshot } from '../../database/snapshot.ts'
import { isGenuine } from '../checkpoints/checkpoint.ts'
import { actMacs, revisionsNow, uploadedInOrder } from '../checkpoints/queries.ts'
import type { Findings } from './findings.ts'

/** How far a wallet's chain had come when it was sealed. Ids are UUIDs. */
export type SealedHead = { workspaceId: string; walletId: string; sequence: number; head: Buffer; revision: number }

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

  /** The wallets' heads, in the order of their keys. */
  async *heads(): AsyncGenerator<SealedHead[]> {
    for await (const part of this.#parts()) {
      this.findings.sealedAt = part.sealedAt
      this.findings.workspaceId = part.workspaceId
      this.findings.wallets += part.chains.length
      yield part.chains.map(toHead)
    }
  }

  /** Compares everything else that was sealed, part by part. */
  async checkRows(findings: Findings): Promise<void> {
    for await (const { rows, audits } of this.#parts()) {
      const revisions = await revisionsNow(this.#snapshot, rows)
      for (const [at, row] of rows.entries()) {
        const revision = revisions[at] === null ? null : Number(revisions[at])
        if (revision !== null && revision >= row.revision) continue
        findings.add({ rule: 'seal-revision', message: messageOfRow(row, revision), ids: idsOfRow(row) })
      }
      const macs = await actMacs(this.#snapshot, audits)
      for (const [at, { workspaceId, position, head }] of audits.entries()) {
        if (macs[at] === head) continue
        const change = macs[at] === null ? 'does not exist any more' : 'bears another MAC than the one that was sealed'
        const ids = workspaceId === null ? {} : { workspaceId }
        findings.add({ rule: 'seal-audit', message: `act ${position} of its audit ${change}`, ids })
      }
    }
  }

  async *#parts(): AsyncGenerator<SealPart> {
    let due = 0
    let isLast = false
    for await (const contents of uploadedInOrder(this.#snapshot, this.#seal.uploadId))
      for (const content of contents) {
        const part = parsePart(content)
        const isDue = part?.part === due && part.sealId === this.#seal.sealId && !isLast
        if (!isDue || !isGenuine(this.#chainKey, part)) return this.#fail()
        due++
        isLast = part.last
        yield part
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

const nameOfKind = { workspace: 'workspace', ledger: 'ledger', member: 'membership', key: 'API key' } as const

function messageOfRow({ kind, revision }: SealedRow, now: number | null): string {
  const name = nameOfKind[kind]
  return now === null
    ? `its ${name} was sealed, and does not exist any more`
    : `the row of its ${name} was sealed at revision ${revision}, and is back at ${now}`
}

function idsOfRow({ kind, workspaceId, id }: SealedRow): Record<string, string> {
  if (kind === 'member') return { workspaceId, userId: id }
  return kind === 'key' ? { workspaceId, apiKey: id } : { workspaceId }
}

function toHead({ workspaceId, walletId, sequence, head, revision }: SealPart['chains'][number]): SealedHead {
  return {
    workspaceId: uuidFromId('workspace', workspaceId)!,
    walletId: uuidFromId('wallet', walletId)!,
    sequence,
    head: Buffer.from(head, 'hex'),
    revision,
  }
}
