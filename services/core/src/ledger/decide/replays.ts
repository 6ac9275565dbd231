import { Decimal } from '@workspace-wallet/contract'
import type { Transfer } from '../chain/transfer.ts'
import type { Draft } from './draft.ts'
import type { Command, HoldCreation, Made, Name, Posting, Reversal } from './requests.ts'
import type { HoldState } from './state.ts'

/** What a command made when it was sent before; 'different' if its name belongs to something else; null if it is new. */
export function repeatedBy(draft: Draft, command: Command): NonNullable<Made> | 'different' | null {
  switch (command.kind) {
    case 'posting':
    case 'reversal': {
      const existing = findExisting(command, name => draft.transfer(name), command.transferId)
      if (!existing) return null
      const isSame = command.kind === 'posting' ? isSamePosting : isSameReversal
      return isSame(draft, existing, command as never) ? draft.made(existing)! : 'different'
    }
    case 'hold creation': {
      const hold = findExisting(command, name => draft.hold(name), command.holdId)
      if (!hold) return null
      return isSameHold(hold, command) ? { hold } : 'different'
    }
    case 'hold release': {
      const hold = draft.hold(command.hold)
      return hold?.status === 'RELEASED' ? { hold } : null
    }
    case 'expiry':
      return null
  }
}

function findExisting<Row>({ bizId }: { bizId: string | null }, find: (name: Name) => Row | undefined, id: string) {
  return (bizId === null ? undefined : find({ bizId })) ?? find({ id })
}

/**
 * Whether a posting repeats this transfer. Remark, reference, caller and time may differ; amounts are compared as numbers. The
 * bizId differs if only the ID is the same.
 */
function isSamePosting(draft: Draft, existing: Transfer, posting: Posting): boolean {
  const holdId = posting.draw ? draft.hold(posting.draw.hold)?.id : null
  return (
    existing.type === posting.type &&
    existing.bizId === posting.bizId &&
    existing.sourceWalletId === posting.sourceWalletId &&
    existing.targetWalletId === posting.targetWalletId &&
    existing.currency === posting.currency &&
    existing.holdId === holdId &&
    existing.reversesId === null &&
    new Decimal(existing.amount).equals(posting.amount)
  )
}

function isSameReversal(draft: Draft, existing: Transfer, reversal: Reversal): boolean {
  return (
    existing.reversesId !== null &&
    existing.bizId === reversal.bizId &&
    existing.reversesId === draft.transfer(reversal.reverses)?.transferId &&
    existing.currency === reversal.currency &&
    new Decimal(existing.amount).equals(reversal.amount)
  )
}

function isSameHold(existing: HoldState, creation: HoldCreation): boolean {
  return (
    existing.bizId === creation.bizId &&
    existing.walletId === creation.walletId &&
    existing.currency === creation.currency &&
    existing.expiresAt.getTime() - existing.createdAt.getTime() === creation.expiresInSeconds * 1000 &&
    new Decimal(existing.amount).equals(creation.amount)
  )
}
