import type { Uuid } from '@workspace-wallet/contract'
import type { LedgerWaits } from '../ledger/posting/ledger-waits.ts'
import type { CheckedReads } from '../ledger/store/require-signed.ts'

/** What `readSettled` needs to read from a pool. */
export type SettledReads = CheckedReads & { ledgerWaits: Pick<LedgerWaits, 'wait'> }

/**
 * Reads something that shows due holds as expired. If it shows one that is not written yet, a transaction in progress may
 * have captured it in time and be about to commit. It holds the lock of the ledger, and after it no posting captures the
 * hold: so this waits for the lock and reads again. Otherwise a client could see the hold EXPIRED and later CAPTURED.
 */
export async function readSettled<Result>(
  { ledgerWaits }: Pick<SettledReads, 'ledgerWaits'>,
  workspaceId: Uuid<'workspace'>,
  read: () => Promise<Result>,
  showsDueHold: (result: Result) => boolean,
): Promise<Result> {
  const result = await read()
  if (!showsDueHold(result)) return result
  await ledgerWaits.wait(workspaceId)
  return read()
}
