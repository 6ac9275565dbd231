import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import {
  AdminError,
  type CheckpointAudit,
  type CheckpointChain,
  type CheckpointLog,
  type CheckpointPart,
  type CheckpointRow,
  checkpointFormat,
  checkpointPartEntries,
  idFromUuid,
  type Uuid,
} from '@workspace-wallet/contract'
import type { Pool } from 'pg'
import { Snapshot } from '../../database/snapshot.ts'
import { hideMoved } from '../moved.ts'
import {
  auditHeads,
  type CheckpointWallet,
  headsInOrder,
  logEnds,
  signedRows,
  snapshotTime,
  uploadPart,
} from './queries.ts'

type CheckpointScope = {
  databaseUrl: string
  chainKey: KeyObject
  /** Null for all workspaces of the place. */
  workspaceId: Uuid<'workspace'> | null
  checkpointId: string
  /** The number of the place, and whether the checkpoint ends with it. */
  place: number
  isLastPlace: boolean
}

/**
 * Signs, of a place, the last flow of each chain, the end of each event log and the revision of each signed row, as of one snapshot. A chain or row that was
 * reset to a genuine earlier state no longer matches. Yields the parts one by one, in constant memory.
 *
 * @throws AdminError NOT_ALLOWED if the row of a wallet is damaged
 */
export async function* createCheckpoint(
  { databaseUrl, chainKey, workspaceId, checkpointId, place, isLastPlace }: CheckpointScope,
  signal?: AbortSignal,
): AsyncGenerator<CheckpointPart, void> {
  const snapshot = await Snapshot.open({ databaseUrl, chainKey }, 'core checkpoint', signal)
  let last: CheckpointPart
  try {
    await hideMoved(snapshot, chainKey, place)
    const checkpoint = {
      format: checkpointFormat,
      checkpointId,
      takenAt: await snapshotTime(snapshot),
      workspaceId: workspaceId && idFromUuid('workspace', workspaceId),
      place,
    } as const
    let part = 0
    let entries = noEntries()
    let count = 0
    for await (const batch of entriesOf(snapshot, workspaceId))
      for (const add of batch) {
        if (count === checkpointPartEntries) {
          yield signed(chainKey, { ...checkpoint, part: part++, lastOfPlace: false, last: false, ...entries })
          entries = noEntries()
          count = 0
        }
        add(entries)
        count++
      }
    last = signed(chainKey, { ...checkpoint, part, lastOfPlace: true, last: isLastPlace, ...entries })
  } finally {
    await snapshot.close()
  }
  // Only now: a caller may take any time to read it, and may begin another export meanwhile.
  yield last
}

type Entries = { chains: CheckpointChain[]; rows: CheckpointRow[]; logs: CheckpointLog[]; audits: CheckpointAudit[] }

const noEntries = (): Entries => ({ chains: [], rows: [], logs: [], audits: [] })

/** All entries of a checkpoint, as functions that add them to a part. Wallets come first, in the order of their keys. */
async function* entriesOf(snapshot: Snapshot, workspaceId: Uuid<'workspace'> | null) {
  for await (const wallets of headsInOrder(snapshot, workspaceId))
    yield wallets.map(wallet => (to: Entries) => to.chains.push(checkpointChain(wallet)))
  for await (const rows of signedRows(snapshot, workspaceId)) yield rows.map(row => (to: Entries) => to.rows.push(row))
  for await (const logs of logEnds(snapshot, workspaceId)) yield logs.map(log => (to: Entries) => to.logs.push(log))
  for await (const audits of auditHeads(snapshot, workspaceId))
    yield audits.map(audit => (to: Entries) => to.audits.push(audit))
}

/**
 * Stores a part of a checkpoint for a later verification, by this core or another one.
 *
 * @returns false, without storing the part, if it was not signed with this key or has been changed
 */
export async function uploadCheckpointPart(
  db: Pool,
  chainKey: KeyObject,
  uploadId: string,
  part: CheckpointPart,
): Promise<boolean> {
  if (!isGenuine(chainKey, part)) return false
  await uploadPart(db, uploadId, part.part, JSON.stringify(part))
  return true
}

/** Whether the part was signed with this key and not changed since. */
export function isGenuine(chainKey: KeyObject, part: CheckpointPart): boolean {
  return timingSafeEqual(Buffer.from(macOf(chainKey, part), 'hex'), Buffer.from(part.mac, 'hex'))
}

function signed(key: KeyObject, part: Omit<CheckpointPart, 'mac'>): CheckpointPart {
  return { ...part, mac: macOf(key, part) }
}

/** The content begins with a word of its own, so that no other MAC under the chain key is valid here (see tables/table.ts). */
function macOf(key: KeyObject, part: Omit<CheckpointPart, 'mac'>): string {
  const content = [
    'ledger checkpoint',
    part.format,
    part.checkpointId,
    part.takenAt,
    part.workspaceId,
    part.place,
    part.part,
    part.lastOfPlace,
    part.last,
    part.chains.map(chain => [chain.workspaceId, chain.walletId, chain.sequence, chain.head, chain.revision]),
    part.rows.map(({ kind, workspaceId, id, revision }) => [kind, workspaceId, id, revision]),
    part.logs.map(({ workspaceId, position, head }) => [workspaceId, position, head]),
    part.audits.map(({ workspaceId, position, head }) => [workspaceId, position, head]),
  ]
  return createHmac('sha256', key).update(JSON.stringify(content)).digest('hex')
}

function checkpointChain({ workspaceId, walletId, sequence, head, revision }: CheckpointWallet): CheckpointChain {
  const ids = { workspaceId: idFromUuid('workspace', workspaceId), walletId: idFromUuid('wallet', walletId) }
  if ((head === '') !== (sequence === 0))
    throw new AdminError(
      'NOT_ALLOWED',
      `${ids.walletId} has a damaged row, so no checkpoint can be taken: run ledger verify.`,
    )
  return { ...ids, sequence, head, revision }
}
