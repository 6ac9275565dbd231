import type { KeyObject } from 'node:crypto'
import { findCheckedActions, type RecordedAction } from '../audit/records.ts'
import type { Queryable } from '../database/statement.ts'
import type { Metrics } from '../metrics/metrics.ts'

/** Records of single workspaces and records that are not genuine do not count. Only the newest ones are read. */
const readRecords = 50

const figures: [name: string, help: string, action: RecordedAction][] = [
  ['core_last_verification_timestamp_seconds', 'When all workspaces were last verified; 0 if never', 'ledger.verify'],
  [
    'core_last_checkpoint_timestamp_seconds',
    'When a checkpoint of all workspaces was last taken; 0 if never',
    'ledger.checkpoint',
  ],
  ['core_last_backup_timestamp_seconds', 'When a backup was last recorded; 0 if never', 'system.backup'],
]

/** Exports when the ledger was last verified, a checkpoint taken and a backup recorded, by the clock of PostgreSQL. */
export function watchIntegrity(to: Metrics, { reads, chainKey }: { reads: Queryable; chainKey: KeyObject }): void {
  for (const [name, help, action] of figures)
    to.watchDatabase(name, help, async () => {
      const actions = await findCheckedActions(reads, chainKey, action, { limit: readRecords })
      const last = actions.find(({ isGenuine, workspaceId }) => isGenuine && workspaceId === null)
      return last ? last.at.getTime() / 1000 : 0
    })
}
