import { createHmac, type KeyObject, randomUUID, timingSafeEqual } from 'node:crypto'
import {
  idFromUuid,
  Refusal,
  type SealedAudit,
  type SealedChain,
  type SealedRow,
  type SealPart,
  sealFormat,
  sealPartEntries,
} from '@workspace-wallet/contract'
import type { ClientConfig, Pool } from 'pg'
import { Snapshot } from '../../database/snapshot.ts'
import { auditHeads, headsInOrder, type SealedWallet, signedRows, snapshotTime, uploadPart } from './queries.ts'

type Sealing = {
  database: ClientConfig
  chainKey: KeyObject
  /** A UUID; null for all workspaces. */
  workspaceId: string | null
}

/**
 * Signs how far every chain has come and how often every signed row was written, as of one snapshot: what neither can
 * show by itself is that it was put back whole to an earlier state. Yields part after part, in constant memory.
 */
export async function* sealLedger(
  { database, chainKey, workspaceId }: Sealing,
  signal?: AbortSignal,
): AsyncGenerator<SealPart, void> {
  const snapshot = await Snapshot.open(database, 'core seal', signal)
  try {
    const seal = {
      format: sealFormat,
      sealId: randomUUID(),
      sealedAt: await snapshotTime(snapshot),
      workspaceId: workspaceId && idFromUuid('workspace', workspaceId),
    } as const
    let part = 0
    let entries = noEntries()
    let count = 0
    for await (const batch of entriesOf(snapshot, workspaceId))
      for (const add of batch) {
        if (count === sealPartEntries) {
          yield signed(chainKey, { ...seal, part: part++, last: false, ...entries })
          entries = noEntries()
          count = 0
        }
        add(entries)
        count++
      }
    yield signed(chainKey, { ...seal, part, last: true, ...entries })
  } finally {
    await snapshot.close()
  }
}

type Entries = { chains: SealedChain[]; rows: SealedRow[]; audits: SealedAudit[] }

const noEntries = (): Entries => ({ chains: [], rows: [], audits: [] })

/** Everything that is sealed, each entry with the list that it goes to. Wallets come first, in the order of their keys. */
async function* entriesOf(snapshot: Snapshot, workspaceId: string | null) {
  for await (const wallets of headsInOrder(snapshot, workspaceId))
    yield wallets.map(wallet => (to: Entries) => to.chains.push(sealedChain(wallet)))
  for await (const rows of signedRows(snapshot, workspaceId)) yield rows.map(row => (to: Entries) => to.rows.push(row))
  for await (const audits of auditHeads(snapshot, workspaceId))
    yield audits.map(audit => (to: Entries) => to.audits.push(audit))
}

/**
 * Keeps a part of a seal in the database, for the verification that follows: any core may do either.
 *
 * @returns false for a part that was not signed under this key, or was changed since: it says nothing about the ledger
 */
export async function uploadSealPart(
  db: Pool,
  chainKey: KeyObject,
  uploadId: string,
  part: SealPart,
): Promise<boolean> {
  const isOurs = isGenuine(chainKey, part)
  if (isOurs) await uploadPart(db, uploadId, part.part, JSON.stringify(part))
  return isOurs
}

/** Whether this key signed exactly this part. */
export function isGenuine(chainKey: KeyObject, part: SealPart): boolean {
  return timingSafeEqual(Buffer.from(macOf(chainKey, part), 'hex'), Buffer.from(part.mac, 'hex'))
}

function signed(key: KeyObject, part: Omit<SealPart, 'mac'>): SealPart {
  return { ...part, mac: macOf(key, part) }
}

/** The content of a flow's MAC begins with a number (see chain.ts), this with a word: neither passes for the other. */
function macOf(key: KeyObject, part: Omit<SealPart, 'mac'>): string {
  const content = [
    'ledger seal',
    part.format,
    part.sealId,
    part.sealedAt,
    part.workspaceId,
    part.part,
    part.last,
    part.chains.map(chain => [chain.workspaceId, chain.walletId, chain.sequence, chain.head, chain.revision]),
    part.rows.map(({ kind, workspaceId, id, revision }) => [kind, workspaceId, id, revision]),
    part.audits.map(({ workspaceId, position, head }) => [workspaceId, position, head]),
  ]
  return createHmac('sha256', key).update(JSON.stringify(content)).digest('hex')
}

function sealedChain({ workspaceId, walletId, sequence, head, revision }: SealedWallet): SealedChain {
  const ids = { workspaceId: idFromUuid('workspace', workspaceId), walletId: idFromUuid('wallet', walletId) }
  if ((head === '') !== (sequence === 0))
    throw new Refusal('NOT_ALLOWED', `${ids.walletId} cannot be sealed, its row is damaged: run ledger verify.`)
  return { ...ids, sequence, head, revision }
}
