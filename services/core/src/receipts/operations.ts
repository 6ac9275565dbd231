import type { KeyObject } from 'node:crypto'
import { DomainError, idFromUuid, type ReceiptCheck, type ReceiptClaims } from '@workspace-wallet/contract'
import type { SampledLog } from '@workspace-wallet/runtime'
import type { Pool } from 'pg'
import type { TransferWithEntries } from '../ledger/chain/chain.ts'
import { ModifiedRow } from '../ledger/store/require-signed.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { payloadOf, signReceipt, verifyReceipt } from '../signing/jws.ts'
import type { SigningKeys } from '../signing/signing-keys.ts'
import { toCompletedOrder } from '../transfers/operations.ts'
import { findOrder } from '../transfers/queries.ts'

type Parts = { reads: Pool; chainKey: KeyObject; receiptKeys: SigningKeys; sampledLog: SampledLog; metrics: Metrics }

/**
 * A signed receipt of a transfer order. As long as the same key signs, it always has the same bytes.
 *
 * @throws DomainError T001; S001 if the flows of the transfer were modified outside the service
 */
export async function receiptOf(core: Parts, workspaceId: string, name: string): Promise<string> {
  const claims = await findClaims(core, workspaceId, name)
  if (claims === 'MISSING') throw new DomainError('T001')
  if (claims === 'MODIFIED') throw new DomainError('S001')
  return signReceipt(core.receiptKeys, claims)
}

/** Whether a receipt is genuine, and whether the ledger still says the same. */
export async function checkReceipt(
  receiptKeys: SigningKeys,
  receipt: string,
  placeOf: (workspaceId: string) => Promise<Parts>,
): Promise<ReceiptCheck> {
  const verified = verifyReceipt(receiptKeys, receipt)
  if (verified.fault !== null) return { verdict: verified.fault, claims: null }
  const { claims, payload } = verified
  const found = await findClaims(await placeOf(claims.workspaceId), claims.workspaceId, claims.transferId)
  if (found === 'MISSING' || found === 'MODIFIED') return { verdict: `TRANSFER_${found}`, claims }
  return { verdict: payloadOf(found) === payload ? 'CONFIRMED' : 'TRANSFER_DIFFERENT', claims }
}

/** The claims of an order, read from the ledger. A transfer that was modified outside the service is logged. */
async function findClaims(
  core: Parts,
  workspaceId: string,
  name: string,
): Promise<ReceiptClaims | 'MISSING' | 'MODIFIED'> {
  try {
    const found = await findOrder(core, workspaceId, name)
    return found ? claimsOf(found) : 'MISSING'
  } catch (error) {
    if (!(error instanceof ModifiedRow)) throw error
    core.metrics.modifiedRow(error.table)
    const fields = { workspaceId, transfer: name, reason: error.message }
    const message = 'a transfer was modified outside the service: it gets no receipt; run ledger verify'
    core.sampledLog.write(`receipt ${workspaceId}`, { level: 'error', fields, message })
    return 'MODIFIED'
  }
}

function claimsOf({ transfer, source, target }: TransferWithEntries): ReceiptClaims {
  const order = toCompletedOrder(transfer)
  const { transferId, bizId, amount, currency, completedAt, reversesTransferId } = order
  return {
    workspaceId: idFromUuid('workspace', transfer.workspaceId),
    transferId,
    bizId,
    amount,
    currency,
    sourceWalletId: order.sourceWalletId,
    targetWalletId: order.targetWalletId,
    completedAt: completedAt.toISOString(),
    position: transfer.position,
    reversesTransferId,
    source: { sequence: transfer.sourceSequence, mac: base64url(source.mac!) },
    target: { sequence: transfer.targetSequence, mac: base64url(target.mac!) },
  }
}

function base64url(hex: string): string {
  return Buffer.from(hex, 'hex').toString('base64url')
}
