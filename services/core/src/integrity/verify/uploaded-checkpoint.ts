import type { KeyObject } from 'node:crypto'
import {
  type CheckpointFindings,
  type CheckpointLog,
  type CheckpointPart,
  type CheckpointRow,
  checkpointPart,
  type Id,
  idFromUuid,
  type UploadedCheckpoint,
  type Uuid,
  uuidFromId,
} from '@workspace-wallet/contract'
import type { Snapshot } from '../../database/snapshot.ts'
import { isGenuine } from '../checkpoints/checkpoint.ts'
import { actionMacs, logsNow, revisionsNow, uploadedInOrder } from '../checkpoints/queries.ts'
import type { Findings } from './findings/findings.ts'

/** Uploaded parts, and the place of which they are. */
export type PlacedCheckpoint = UploadedCheckpoint & { place: number }

/** The last flow of a wallet at the checkpoint. */
export type CheckpointHead = {
  workspaceId: Uuid<'workspace'>
  walletId: Uuid<'wallet'>
  sequence: number
  head: Buffer
  revision: number
}

/**
 * Reads the checkpoint that was uploaded for a verification, in the order of wallet keys, which is the order of the replay:
 * the two are compared in constant memory. The database is not trusted: a part that is missing, changed, out of order or
 * of another checkpoint ends the reading with a fault.
 */
export class UploadedCheckpointReader {
  readonly findings: CheckpointFindings
  readonly #checkpoint: PlacedCheckpoint
  readonly #snapshot: Snapshot
  readonly #chainKey: KeyObject

  constructor(snapshot: Snapshot, chainKey: KeyObject, checkpoint: PlacedCheckpoint) {
    this.#snapshot = snapshot
    this.#chainKey = chainKey
    this.#checkpoint = checkpoint
    this.findings = { checkpointId: checkpoint.checkpointId, takenAt: null, workspaceId: null, wallets: 0, fault: null }
  }

  /** The heads of the wallets, in the order of their keys. */
  async *heads(): AsyncGenerator<CheckpointHead[]> {
    for await (const part of this.#parts()) {
      this.findings.takenAt = part.takenAt
      this.findings.workspaceId = part.workspaceId
      this.findings.wallets += part.chains.length
      yield part.chains.map(toHead)
    }
  }

  /** Compares the revisions of rows and the ends of event logs and audits, part by part. */
  async checkRows(findings: Findings): Promise<void> {
    for await (const { rows, logs, audits } of this.#parts()) {
      const currentLogs = await logsNow(this.#snapshot, logs)
      for (const [at, log] of logs.entries()) {
        const message = currentLogs[at] ? differenceOfLogs(log, currentLogs[at]) : null
        if (message) findings.add({ rule: 'checkpoint-journal', message, ids: { workspaceId: log.workspaceId } })
      }
      const revisions = await revisionsNow(this.#snapshot, rows)
      for (const [at, row] of rows.entries()) {
        const revision = revisions[at] === null ? null : Number(revisions[at])
        if (revision !== null && revision >= row.revision) continue
        findings.add({ rule: 'checkpoint-revision', message: messageOfRow(row, revision), ids: idsOfRow(row) })
      }
      const macs = await actionMacs(this.#snapshot, audits)
      for (const [at, { workspaceId, position, head }] of audits.entries()) {
        if (macs[at] === head) continue
        const change = macs[at] === null ? 'no longer exists' : 'has another MAC than in the checkpoint'
        const ids = workspaceId === null ? {} : { workspaceId }
        findings.add({ rule: 'checkpoint-audit', message: `action ${position} of its audit ${change}`, ids })
      }
    }
  }

  async *#parts(): AsyncGenerator<CheckpointPart> {
    let next = 0
    let isLast = false
    for await (const contents of uploadedInOrder(this.#snapshot, this.#checkpoint.uploadId))
      for (const content of contents) {
        const part = parsePart(content)
        const { checkpointId, place } = this.#checkpoint
        const isNext = part?.part === next && part.checkpointId === checkpointId && part.place === place && !isLast
        if (!isNext || !isGenuine(this.#chainKey, part)) return this.#fail()
        next++
        isLast = part.lastOfPlace
        yield this.#withoutHidden(part)
      }
    if (!isLast) this.#fail()
  }

  /** A workspace that has left since is compared with a checkpoint that was taken where it is. */
  #withoutHidden(part: CheckpointPart): CheckpointPart {
    const hidden = new Set([...this.#snapshot.hidden].map(id => idFromUuid('workspace', id as Uuid<'workspace'>)))
    if (hidden.size === 0) return part
    const isHere = ({ workspaceId }: { workspaceId: string | null }) => !hidden.has(workspaceId as Id<'workspace'>)
    const { chains, rows, logs, audits } = part
    return {
      ...part,
      chains: chains.filter(isHere),
      rows: rows.filter(isHere),
      logs: logs.filter(isHere),
      audits: audits.filter(isHere),
    }
  }

  #fail(): void {
    this.findings.fault = 'its uploaded parts were changed in the database during the comparison'
  }
}

function parsePart(content: string): CheckpointPart | null {
  try {
    return checkpointPart.parse(JSON.parse(content))
  } catch {
    return null
  }
}

/** A ledger that no longer exists is reported once, with its revision. */
function differenceOfLogs(log: CheckpointLog, now: { position: string | null; head: string }): string | null {
  if (!(Number(now.position) >= log.position))
    return `its event log is at position ${now.position}, and at ${log.position} in the checkpoint`
  return now.head === log.head
    ? null
    : `its last journal entry up to position ${log.position} has another MAC than in the checkpoint`
}

const nameOfKind = {
  workspace: 'workspace',
  ledger: 'ledger',
  hold: 'hold',
  limit: 'limit',
  member: 'membership',
  key: 'API key',
  webhook: 'webhook',
} as const

const nameOfId: Partial<Record<CheckpointRow['kind'], string>> = {
  hold: 'holdId',
  limit: 'limit',
  member: 'userId',
  key: 'apiKey',
  webhook: 'webhookId',
}

function messageOfRow({ kind, revision }: CheckpointRow, now: number | null): string {
  const name = nameOfKind[kind]
  return now === null
    ? `its ${name} is in the checkpoint but no longer exists`
    : `the row of its ${name} is at revision ${now}, and at ${revision} in the checkpoint`
}

function idsOfRow({ kind, workspaceId, id }: CheckpointRow): Record<string, string> {
  const name = nameOfId[kind]
  return name ? { workspaceId, [name]: id } : { workspaceId }
}

/** Core wrote these IDs, and has checked that the part is unchanged. */
function toHead({ workspaceId, walletId, sequence, head, revision }: CheckpointPart['chains'][number]): CheckpointHead {
  return {
    workspaceId: uuidFromId('workspace', workspaceId as Id<'workspace'>),
    walletId: uuidFromId('wallet', walletId as Id<'wallet'>),
    sequence,
    head: Buffer.from(head, 'hex'),
    revision,
  }
}
