import type { KeyObject } from 'node:crypto'
import type { Uuid } from '@workspace-wallet/contract'
import type { Snapshot } from '../../database/snapshot.ts'
import { type Baseline, Digests } from './baseline.ts'
import type { Extent } from './extent.ts'
import type { Findings } from './findings/findings.ts'

/** What to verify, and where to add the findings. */
export type Scope = {
  snapshot: Snapshot
  /** The number of the place. */
  place: number
  chainKey: KeyObject
  /** Null for all workspaces. */
  workspaceId: Uuid<'workspace'> | null
  findings: Findings
  extent: Extent
  /** Where the last verification ended; empty for a whole one. */
  baseline: Baseline
  wallets: Digests
  audit: Digests
}

type Given = Pick<Scope, 'snapshot' | 'place' | 'chainKey' | 'workspaceId' | 'findings'>

/** @param baseline where an incremental verification begins; null for a whole one */
export function scopeOf(given: Given, baseline: Baseline | null): Scope {
  const begins: Baseline = baseline ?? new Map()
  return {
    ...given,
    extent: baseline ? 'INCREMENTAL' : 'WHOLE',
    baseline: begins,
    wallets: new Digests('wallets', begins, given.findings),
    audit: new Digests('audit', begins, given.findings),
  }
}
