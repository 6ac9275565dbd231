import { type CreateHoldInput, type Hold, idFromUuid, type ReleaseHoldInput } from '@workspace-wallet/contract'
import { holdColumns } from '../database/tables/hold.ts'
import type { RowOf } from '../database/tables/table.ts'
import { callerOf, nameOf, newId, requestOf, walletRefOf } from '../ledger/decide/commands.ts'
import type { Shards } from '../ledger/posting/shards.ts'

type Ledger = { shards: Shards }

/**
 * Reserves a part of a wallet until it expires. Idempotent by bizId.
 *
 * @throws DomainError GA2032, T005, W001, W002, T003, T002; S002 not done; S003 outcome unknown
 */
export async function createHold({ shards }: Ledger, actor: string, input: CreateHoldInput): Promise<Hold> {
  const { walletId, amount, currency, expiresInSeconds, bizId, remark, reference } = input.hold
  const [made] = await shards.post(
    requestOf(input, [
      {
        kind: 'hold creation',
        holdId: newId('hold', input.holdId),
        bizId,
        walletId: walletRefOf(walletId),
        amount,
        currency,
        expiresInSeconds,
        remark: remark ?? null,
        reference: reference ?? null,
        ...callerOf(actor, input),
      },
    ]),
  )
  return toHold(made.hold)
}

/**
 * Ends a hold and returns what remains of it to its wallet. A hold that is released already is returned as it is.
 *
 * @throws DomainError GA2032, H001, H002; S002 not done; S003 outcome unknown
 */
export async function releaseHold({ shards }: Ledger, actor: string, input: ReleaseHoldInput): Promise<Hold> {
  const { holdId, reason } = input
  const release = { kind: 'hold release', hold: nameOf('hold', holdId), reason, ...callerOf(actor, input) } as const
  const [made] = await shards.post(requestOf(input, [release]))
  return toHold(made.hold)
}

const { workspaceId: _, number, walletNumber, revision, ...shown } = holdColumns
/** The columns of a hold that its record contains. */
export const shownHoldColumns = shown
export type ShownHold = RowOf<typeof shownHoldColumns>

export function toHold(hold: ShownHold): Hold {
  const { bizId, currency, amount, status, expiresAt, reference, remark, createdAt, updatedAt } = hold
  return {
    holdId: idFromUuid('hold', hold.id),
    bizId,
    walletId: idFromUuid('wallet', hold.walletId),
    currency,
    amount,
    capturedAmount: hold.captured,
    remainingAmount: hold.remaining,
    status,
    expiresAt,
    reference,
    remark,
    createdAt,
    updatedAt,
  }
}
