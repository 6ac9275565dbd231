import { Decimal, type IdKind, type Uuid } from '@workspace-wallet/contract'
import type { Transfer } from '../chain/transfer.ts'
import type { Draft } from './draft.ts'
import type {
  Command,
  CommandKind,
  HoldCreation,
  MadeByKind,
  MadeTransfer,
  Name,
  Posting,
  Reversal,
} from './requests.ts'
import type { HoldState } from './state.ts'

type Repeated<Kind extends CommandKind> = NonNullable<MadeByKind[Kind]> | 'different' | null

const finders: { [Kind in CommandKind]: (draft: Draft, command: Command<Kind>) => Repeated<Kind> } = {
  posting: (draft, posting) => repeatedTransfer(draft, posting, existing => isSamePosting(draft, existing, posting)),
  reversal: (draft, reversal) =>
    repeatedTransfer(draft, reversal, existing => isSameReversal(draft, existing, reversal)),
  'hold creation': (draft, creation) => {
    const hold = findExisting(creation, name => draft.hold(name), creation.holdId)
    if (!hold) return null
    return isSameHold(hold, creation) ? { hold } : 'different'
  },
  'hold release': (draft, release) => {
    const hold = draft.hold(release.hold)
    return hold?.status === 'RELEASED' ? { hold } : null
  },
  expiry: () => null,
}

/** What a command made when it was sent before; 'different' if its name belongs to something else; null if it is new. */
export function repeatedBy<Kind extends CommandKind>(draft: Draft, command: Command<Kind>): Repeated<Kind> {
  return finders[command.kind](draft, command)
}

function repeatedTransfer(
  draft: Draft,
  command: Posting | Reversal,
  isSame: (existing: Transfer) => boolean,
): MadeTransfer | 'different' | null {
  const existing = findExisting(command, name => draft.transfer(name), command.transferId)
  if (!existing) return null
  return isSame(existing) ? draft.made(existing) : 'different'
}

function findExisting<Row, Kind extends IdKind>(
  { bizId }: { bizId: string | null },
  find: (name: Name<Kind>) => Row | undefined,
  id: Uuid<Kind>,
) {
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
