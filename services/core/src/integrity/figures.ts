import type { KeyObject } from 'node:crypto'
import { verificationKinds } from '@workspace-wallet/contract'
import type { RecordedAction } from '../audit/records.ts'
import type { Queryable } from '../database/statement.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { findGenuineRecords } from './genuine-records.ts'
import { type EndedVerification, findLastVerifications } from './records.ts'

const times: [name: string, help: string, actions: RecordedAction[]][] = [
  [
    'core_last_verification_timestamp_seconds',
    'When all workspaces were last verified, as a whole or since the last sound verification; 0 if never',
    ['ledger.verify', 'ledger.verify-incremental'],
  ],
  [
    'core_last_checkpoint_timestamp_seconds',
    'When a checkpoint of all workspaces was last taken; 0 if never',
    ['ledger.checkpoint'],
  ],
  ['core_last_backup_timestamp_seconds', 'When a backup was last recorded; 0 if never', ['system.backup']],
]

const ofVerifications: [name: string, help: string, read: (last: EndedVerification) => number][] = [
  [
    'core_verification_timestamp_seconds',
    'When the last verification of all workspaces ended, by kind',
    ({ endedAt }) => endedAt.getTime() / 1000,
  ],
  [
    'core_verification_sound',
    '1 if the last verification of all workspaces found the ledger sound, otherwise 0, by kind',
    ({ ok }) => Number(ok),
  ],
  [
    'core_verification_duration_seconds',
    'How long the last verification of all workspaces took, by kind',
    ({ startedAt, endedAt }) => (endedAt.getTime() - startedAt.getTime()) / 1000,
  ],
  ['core_verification_flows', 'Flows that the last verification of all workspaces read, by kind', ({ flows }) => flows],
]

/** Exports when the ledger was last verified, with which result, when a checkpoint was taken and a backup recorded. */
export function watchIntegrity(to: Metrics, parts: { reads: Queryable; chainKey: KeyObject }): void {
  for (const [name, help, actions] of times)
    to.watchDatabase(name, help, async () => {
      const [last] = await findGenuineRecords(parts, actions)
      return last ? last.at.getTime() / 1000 : 0
    })
  for (const [name, help, read] of ofVerifications)
    to.watchDatabaseSeries(name, help, ['kind'], async () => {
      const { whole, incremental } = await findLastVerifications(parts)
      const last = { WHOLE: whole, INCREMENTAL: incremental }
      return verificationKinds.flatMap(kind =>
        last[kind] ? [{ labels: { kind: kind.toLowerCase() }, value: read(last[kind]) }] : [],
      )
    })
}
