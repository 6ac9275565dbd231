import { createHmac, type KeyObject, randomUUID, timingSafeEqual } from 'node:crypto'
import type { ClientConfig, Pool } from 'pg'
import {
  idFromUuid,
  Refusal,
  type SealedChain,
  type SealPart,
  type SealPartFindings,
  sealFormat,
  sealPartWallets,
  uuidFromId,
  type Violation,
} from '../../contract/index.ts'
import { findSealed, headsInOrder, type SealedWallet, snapshotTime } from './seal-queries.ts'
import { Snapshot } from './verify-snapshot.ts'

type Sealing = {
  database: ClientConfig
  chainKey: KeyObject
  /** A UUID; null for all workspaces. */
  workspaceId: string | null
}

/**
 * Signs how far every chain has come, as of one snapshot: what a chain cannot show by itself is that its tail was cut
 * off together with the wallet's row. Yields part after part, in constant memory.
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
    let chains: SealedChain[] = []
    for await (const wallets of headsInOrder(snapshot, workspaceId))
      for (const wallet of wallets) {
        if (chains.length === sealPartWallets) {
          yield signed(chainKey, { ...seal, part: part++, last: false, chains })
          chains = []
        }
        chains.push(sealedChain(wallet))
      }
    yield signed(chainKey, { ...seal, part, last: true, chains })
  } finally {
    await snapshot.close()
  }
}

/**
 * Compares a part of a seal with the ledger. A part that was not signed under this key, or was changed since, says
 * nothing about the ledger and is not compared.
 */
export async function checkSealPart(db: Pool, chainKey: KeyObject, part: SealPart): Promise<SealPartFindings> {
  const due = Buffer.from(macOf(chainKey, part), 'hex')
  if (!timingSafeEqual(due, Buffer.from(part.mac, 'hex'))) return { genuine: false, violations: [] }
  const keys = part.chains.map(chain => ({
    workspaceId: uuidFromId('workspace', chain.workspaceId)!,
    walletId: uuidFromId('wallet', chain.walletId)!,
    sequence: chain.sequence,
  }))
  const found = await findSealed(db, keys)
  return { genuine: true, violations: part.chains.flatMap((chain, at) => changeOf(chain, found.get(at)) ?? []) }
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
    part.chains.map(({ workspaceId, walletId, sequence, head }) => [workspaceId, walletId, sequence, head]),
  ]
  return createHmac('sha256', key).update(JSON.stringify(content)).digest('hex')
}

function sealedChain({ workspaceId, walletId, sequence, head }: SealedWallet): SealedChain {
  const ids = { workspaceId: idFromUuid('workspace', workspaceId), walletId: idFromUuid('wallet', walletId) }
  if ((head === '') !== (sequence === 0))
    throw new Refusal('NOT_ALLOWED', `${ids.walletId} cannot be sealed, its row is damaged: run ledger verify.`)
  return { ...ids, sequence, head }
}

type Found = { sequence: number | null; mac: string | null }

function changeOf(sealed: SealedChain, found: Found | undefined): Violation | null {
  const ids = { workspaceId: sealed.workspaceId, walletId: sealed.walletId, sequence: sealed.sequence }
  if (!found || found.sequence === null)
    return { rule: 'seal-wallet', message: 'it was sealed, and does not exist any more', ids }
  if (found.sequence < sealed.sequence)
    return {
      rule: 'seal-sequence',
      message: `it was sealed at sequence ${sealed.sequence}, and has come only to ${found.sequence}`,
      ids,
    }
  if (sealed.sequence === 0 || found.mac === sealed.head) return null
  return found.mac === null
    ? { rule: 'seal-sequence', message: `its flow ${sealed.sequence} was sealed, and does not exist any more`, ids }
    : { rule: 'seal-head', message: `its flow ${sealed.sequence} bears another MAC than the one that was sealed`, ids }
}
