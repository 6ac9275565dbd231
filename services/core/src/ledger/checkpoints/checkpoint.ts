import { createHmac, type KeyObject, randomUUID, timingSafeEqual } from 'node:crypto'
import {
  idFromUuid,
  Refusal,
  type SealedChain,
  type SealPart,
  sealFormat,
  sealPartWallets,
} from '@workspace-wallet/contract'
import type { ClientConfig, Pool } from 'pg'
import { Snapshot } from '../verify/snapshot.ts'
import { headsInOrder, type SealedWallet, snapshotTime, uploadPart } from './queries.ts'

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
