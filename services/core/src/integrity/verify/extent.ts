import type { VerificationKind } from '@workspace-wallet/contract'

/**
 * What a verification reads. A whole one reads every row. An incremental one begins where the last sound one ended, for each workspace
 * (`verified_ledger`, whose rows were checked before): it reads the events since, the holds that are open or that these events change, and
 * every row of a wallet, a ledger, a workspace or of access. Workspaces without a row in `verified_ledger` are read as a whole.
 */
export type Extent = VerificationKind

/** The nil UUID stands for actions on no workspace. */
export const noWorkspace = '00000000-0000-0000-0000-000000000000'

/** Rows of these actions are as many as deposits and withdrawals, of which the ledger has a row each. */
export const fundingActions = `('wallet.deposit', 'wallet.withdraw')`

/** SQL: the workspaces that anything says exist. */
const workspaces = `(
  select workspace_id from {here}.ledger union select id from {here}.workspace
  union select workspace_id from {here}.verified_ledger)`

// `offset 0` keeps PostgreSQL from joining in another way than by the index on positions: without statistics it expects that a third
// of a table is new.

/** SQL: the rows of a table of events that the verification reads, as an item of FROM. */
export function eventsOf(table: 'journal' | 'transfer', extent: Extent): string {
  if (extent === 'WHOLE') return `{here}.${table}`
  return `(
    select event.* from ${workspaces} of_workspace
    left join {here}.verified_ledger verified on verified.workspace_id = of_workspace.workspace_id
    cross join lateral (
      select * from {here}.${table} row
      where row.workspace_id = of_workspace.workspace_id and row.position > coalesce(verified.position, 0) offset 0) event)`
}

/** SQL: the keys of the holds that an incremental verification reads. */
const readHolds = `
  select workspace_id, id as hold_id from {here}.hold where status = 'OPEN'
  union select workspace_id, hold_id from ${eventsOf('transfer', 'INCREMENTAL')} t where hold_id is not null
  union select workspace_id, hold_id from ${eventsOf('journal', 'INCREMENTAL')} j where hold_id is not null`

/** SQL: the holds that the verification reads, or the events of these holds, as an item of FROM. */
export function ofHolds(table: 'hold' | 'journal' | 'transfer', extent: Extent): string {
  if (extent === 'WHOLE') return `{here}.${table}`
  return `(
    select of_hold.* from (${readHolds}) read_hold
    cross join lateral (
      select * from {here}.${table} row
      where row.workspace_id = read_hold.workspace_id and row.${table === 'hold' ? 'id' : 'hold_id'} = read_hold.hold_id
      offset 0) of_hold)`
}

/** SQL: the actions of these kinds that the verification reads, as an item of FROM. `kinds`: a condition on the column action. */
export function fundingOf(extent: Extent): string {
  if (extent === 'WHOLE') return `(select * from {here}.audit where action in ${fundingActions})`
  return `(
    select action.* from ${workspaces} of_workspace
    left join {here}.verified_ledger verified on verified.workspace_id = of_workspace.workspace_id
    cross join lateral (
      select * from {here}.audit row
      where row.workspace_id = of_workspace.workspace_id and row.position > coalesce(verified.audit_position, 0)
        and row.action in ${fundingActions}
      offset 0) action)`
}
