import { AdminError, Decimal, idFromUuid, type Uuid } from '@workspace-wallet/contract'
import { run, statement } from '../../database/statement.ts'
import { storedHoldColumns } from '../../database/tables/hold.ts'
import { type FoundRow, rowFrom, selectColumns } from '../../database/tables/table.ts'
import type { RowKey } from '../../ledger/decide/requests.ts'
import { findTransfers } from '../../ledger/store/queries.ts'
import { type CheckedReads, ModifiedRow, requireChained, requireSignedHold } from '../../ledger/store/require-signed.ts'

/** The columns of a wallet that follow from its flows and holds. `head` in hex, `heldUntil` in ISO 8601. */
export type WalletState = {
  balance: string
  sequence: number
  orderCount: number
  head: string
  held: string
  heldUntil: string | null
  holdCount: number
}

/**
 * Checks that the service wrote the last flow and all holds of a wallet, and that they say what is about to be signed. The
 * verification has checked them too, but somebody may have changed them since.
 *
 * @param lastTransferId the transfer of the last flow; null without any
 * @throws AdminError NOT_ALLOWED
 */
export async function requireSources(
  core: CheckedReads,
  wallet: RowKey<'wallet'>,
  lastTransferId: Uuid<'transfer'> | null,
  expected: WalletState,
): Promise<void> {
  try {
    const isSame =
      (await isLastFlow(core, wallet, lastTransferId, expected)) && (await areHolds(core, wallet, expected))
    if (isSame) return
  } catch (error) {
    if (!(error instanceof ModifiedRow)) throw error
  }
  throw new AdminError(
    'NOT_ALLOWED',
    `Flows or holds of ${idFromUuid('wallet', wallet.id)} were inserted or changed outside the service during the verification: nothing was repaired, run ledger verify.`,
  )
}

/** @throws ModifiedRow */
async function isLastFlow(
  { reads, chainKey }: CheckedReads,
  { workspaceId, id }: RowKey<'wallet'>,
  lastTransferId: Uuid<'transfer'> | null,
  { balance, sequence, orderCount, head }: WalletState,
): Promise<boolean> {
  if (lastTransferId === null) return sequence === 0 && new Decimal(balance).isZero()
  const [found] = await findTransfers(reads, [{ workspaceId, name: { id: lastTransferId } }])
  if (!found) return false
  requireChained(chainKey, found)
  const { transfer, source, target } = found
  const isSource = transfer.sourceWalletId === id
  if (!isSource && transfer.targetWalletId !== id) return false
  const flow = isSource ? source : target
  return (
    (isSource ? transfer.sourceSequence : transfer.targetSequence) === sequence &&
    new Decimal(flow.balanceAfter!).equals(balance) &&
    flow.orderCount === orderCount &&
    flow.mac === head
  )
}

const holdsPerRead = 1000

const findHoldsOfWalletStatement = statement<FoundRow<typeof storedHoldColumns>>(
  'find-all-holds-of-wallet',
  `select ${selectColumns(storedHoldColumns, 'h')} from hold h
   where h.workspace_id = $1 and h.wallet_id = $2 and h.wallet_number > $3
   order by h.wallet_number limit ${holdsPerRead}`,
)

/** @throws ModifiedRow */
async function areHolds(
  { reads, chainKey }: CheckedReads,
  { workspaceId, id }: RowKey<'wallet'>,
  { held, heldUntil, holdCount }: WalletState,
): Promise<boolean> {
  let sum = new Decimal(0)
  let count = 0
  let firstExpiryMs = Number.POSITIVE_INFINITY
  for (let last = 0; ; ) {
    const rows = await run(reads, findHoldsOfWalletStatement, [workspaceId, id, last])
    for (const found of rows) {
      const hold = rowFrom(storedHoldColumns, found)
      requireSignedHold(chainKey, hold)
      last = hold.walletNumber
      count++
      if (hold.status !== 'OPEN') continue
      sum = sum.plus(hold.remaining)
      firstExpiryMs = Math.min(firstExpiryMs, hold.expiresAt.getTime())
    }
    if (rows.length < holdsPerRead) break
  }
  const isInTime =
    heldUntil === null ? firstExpiryMs === Number.POSITIVE_INFINITY : Date.parse(heldUntil) <= firstExpiryMs
  return count === holdCount && sum.equals(held) && isInTime
}
