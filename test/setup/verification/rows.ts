import type { KeyObject } from 'node:crypto'
import type { Snapshot } from '../../../services/core/src/database/snapshot.ts'
import type { Baseline } from '../../../services/core/src/integrity/verify/baseline.ts'
import { Findings } from '../../../services/core/src/integrity/verify/findings/findings.ts'
import { scopeOf } from '../../../services/core/src/integrity/verify/scope.ts'
import { checkRows } from '../../../services/core/src/integrity/verify/verify.ts'

/** Verifies the rows without the definitions of the database. @param baseline null to read everything */
export async function findingsInRows(
  snapshot: Snapshot,
  of: { chainKey: KeyObject; place: number },
  baseline: Baseline | null,
): Promise<Findings> {
  const findings = new Findings()
  const counts = { workspaces: 0, wallets: 0, transfers: 0, flows: 0, holds: 0, journalEntries: 0 }
  const scope = scopeOf({ snapshot, ...of, workspaceId: null, findings }, baseline)
  for await (const _ of checkRows(scope, null, counts));
  return findings
}
