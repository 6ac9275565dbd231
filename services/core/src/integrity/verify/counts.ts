import type { VerifyReport } from '@workspace-wallet/contract'
import { type Check, ledgerCount, rowIds, runChecks, workspaceIds } from './checks.ts'
import { type Extent, eventsOf, noWorkspace, ofHolds } from './extent.ts'
import type { Scope } from './scope.ts'

export type RowCounts = Pick<
  VerifyReport,
  'workspaces' | 'wallets' | 'transfers' | 'flows' | 'holds' | 'journalEntries'
>

/**
 * The number of rows to verify. Flows are not counted here: their number is the sum of the wallets' sequences, and with an incremental
 * verification twice that of the new transfers.
 */
export async function countRows({ snapshot, workspaceId, extent }: Scope): Promise<RowCounts> {
  const isWhole = extent === 'WHOLE'
  const [row] = await snapshot.rows(
    `select
       (select count(*) from {here}.workspace where $1::uuid is null or id = $1),
       (select count(*) from {here}.wallet where $1::uuid is null or workspace_id = $1),
       (select count(*) from ${eventsOf('transfer', extent)} t where $1::uuid is null or workspace_id = $1),
       (select ${isWhole ? 'coalesce(sum(sequence), 0) from {here}.wallet' : `2 * count(*) from ${eventsOf('transfer', extent)} t`} where $1::uuid is null or workspace_id = $1),
       (select count(*) from ${ofHolds('hold', extent)} h where $1::uuid is null or workspace_id = $1),
       (select count(*) from ${eventsOf('journal', extent)} j where $1::uuid is null or workspace_id = $1)`,
    [workspaceId],
  )
  const [workspaces, wallets, transfers, flows, holds, journalEntries] = row!.map(Number)
  return {
    workspaces: workspaces!,
    wallets: wallets!,
    transfers: transfers!,
    flows: flows!,
    holds: holds!,
    journalEntries: journalEntries!,
  }
}

/** Checks counters, numbers, names and times of wallets, transfers and audits. */
export function checkNumbers({ snapshot, workspaceId, findings, extent }: Scope): Promise<void> {
  return runChecks(snapshot, workspaceId, findings, [
    ledgerOfWorkspace,
    walletNumbers,
    walletCounts,
    externalWallets,
    sameWallets(extent),
    extent === 'WHOLE' ? orderCounts : newOrderCounts,
    bizIds(extent),
    reversals(extent),
    batches(extent),
    timesInOrder('wallet'),
    timesInOrder('hold'),
    auditHeads(extent),
  ])
}

const ledgerOfWorkspace: Check = {
  rule: 'workspace-ledger',
  sql: `
    select n.id, w.id is not null
    from (select id from {here}.workspace union select workspace_id from {here}.ledger union select workspace_id from {here}.wallet) n
    left join {here}.workspace w on w.id = n.id
    left join {here}.ledger l on l.workspace_id = n.id
    where ($1::uuid is null or n.id = $1) and (w.id is null or l.last_posted_at is null)
    order by n.id`,
  violation: ([workspace, exists]) => ({
    message:
      exists === 't' ? 'it has no ledger, or one without a time' : 'it has a ledger or wallets but does not exist',
    ids: workspaceIds(workspace),
  }),
}

const walletNumbers: Check = {
  rule: 'wallet-number',
  sql: `
    select workspace_id, id, number, expected from (
      select workspace_id, id, number, case kind
        when 'CUSTOMER' then
          lag(number, 1, 0::bigint) over (partition by workspace_id, kind order by number)::numeric + 1::numeric end as expected
      from {here}.wallet where $1::uuid is null or workspace_id = $1) w
    where number::numeric is distinct from expected
    order by workspace_id, number`,
  violation: ([workspace, id, number, expected]) => ({
    message: `its number is ${number}, expected ${expected}`,
    ids: rowIds('wallet', workspace, id),
  }),
}

const walletCounts = ledgerCount('ledger-wallet-count', {
  counter: 'wallet_count',
  table: 'wallet',
  where: `kind = 'CUSTOMER'`,
  what: "customers' wallets",
})

const externalWallets: Check = {
  rule: 'wallet-external',
  sql: `
    select workspace_id, currency, count(*) filter (where kind = 'EXTERNAL')
    from {here}.wallet where $1::uuid is null or workspace_id = $1
    group by workspace_id, currency having count(*) filter (where kind = 'EXTERNAL') <> 1
    order by workspace_id, currency`,
  violation: ([workspace, currency, found]) => ({
    message: `it has ${found} EXTERNAL wallets in ${currency}`,
    ids: { ...workspaceIds(workspace), currency: `${currency}` },
  }),
}

const sameWallets = (extent: Extent): Check => ({
  rule: 'transfer-wallets',
  sql: `
    select workspace_id, id from ${eventsOf('transfer', extent)} t
    where source_wallet_id is not distinct from target_wallet_id and ($1::uuid is null or workspace_id = $1)
    order by workspace_id, id`,
  violation: ([workspace, id]) => ({
    message: 'its source is its target',
    ids: rowIds('transfer', workspace, id),
  }),
})

const orderCounts = ledgerCount('ledger-order-count', {
  counter: 'order_count',
  table: 'transfer',
  where: `type = 'TRANSFER'`,
  what: 'transfers between wallets',
})

/** The orders that the last verification has seen, and those since. The event log has checked the count of each event. */
const newOrderCounts: Check = {
  rule: 'ledger-order-count',
  sql: `
    select l.workspace_id, l.order_count, coalesce(v.order_count, 0) + coalesce(r.found, 0)
    from {here}.ledger l left join {here}.verified_ledger v on v.workspace_id = l.workspace_id
    left join (
      select workspace_id, count(*) as found from ${eventsOf('transfer', 'INCREMENTAL')} t where type = 'TRANSFER'
      group by workspace_id) r on r.workspace_id = l.workspace_id
    where ($1::uuid is null or l.workspace_id = $1)
      and l.order_count is distinct from coalesce(v.order_count, 0) + coalesce(r.found, 0)
    order by l.workspace_id`,
  violation: orderCounts.violation,
}

/** The new transfers can have the bizId of any other one. */
const bizIds = (extent: Extent): Check => ({
  rule: 'transfer-biz-id',
  sql: `
    select workspace_id, min(id::text), biz_id, count(*)
    from ${extent === 'WHOLE' ? '{here}.transfer' : sameBizIds} t where biz_id is not null and ($1::uuid is null or workspace_id = $1)
    group by workspace_id, biz_id having count(*) > 1
    order by workspace_id, biz_id`,
  violation: ([workspace, id, bizId, found]) => ({
    message: `${found} transfers have the bizId ${bizId}`,
    ids: { ...rowIds('transfer', workspace, id), bizId: `${bizId}` },
  }),
})

const sameBizIds = `(
  select same.* from (select distinct workspace_id, biz_id from ${eventsOf('transfer', 'INCREMENTAL')} t where biz_id is not null) named
  cross join lateral (
    select * from {here}.transfer row where row.workspace_id = named.workspace_id and row.biz_id = named.biz_id offset 0) same)`

/** All reversals of the transfers that new ones reverse. */
const sameReversals = `(
  select same.* from (
    select distinct workspace_id, reverses_id from ${eventsOf('transfer', 'INCREMENTAL')} t where reverses_id is not null) reversed
  cross join lateral (
    select * from {here}.transfer row
    where row.workspace_id = reversed.workspace_id and row.reverses_id = reversed.reverses_id offset 0) same)`

const reversals = (extent: Extent): Check => ({
  rule: 'reversal',
  sql: `
    select r.workspace_id, r.id, r.amount, r.reversed_total, r.expected, o.amount
    from (
      select *, amount + lag(reversed_total, 1, 0::numeric)
        over (partition by workspace_id, reverses_id order by position) as expected
      from ${extent === 'WHOLE' ? '{here}.transfer' : sameReversals} t where reverses_id is not null and ($1::uuid is null or workspace_id = $1)) r
    left join {here}.transfer o on o.workspace_id = r.workspace_id and o.id = r.reverses_id
      and o.position < r.position and o.type = 'TRANSFER' and r.type = 'TRANSFER' and o.reverses_id is null
      and o.currency = r.currency and o.source_wallet_id = r.target_wallet_id and o.target_wallet_id = r.source_wallet_id
    where (r.reversed_total = r.expected and r.reversed_total <= o.amount) is not true
    order by r.workspace_id, r.position`,
  violation: ([workspace, id, amount, total, expected, original]) => ({
    message:
      original === null
        ? 'it does not reverse an earlier transfer between its wallets'
        : `it reverses ${amount}, and ${total} with the reversals before it (expected ${expected}) of ${original}`,
    ids: rowIds('transfer', workspace, id),
  }),
})

const batches = (extent: Extent): Check => ({
  rule: 'batch',
  sql: `
    select workspace_id, id, before from (
      select workspace_id, id, batch_id, type, position, created_at, lag(position) over batch as before,
        lag(created_at) over batch as earlier
      from ${eventsOf('transfer', extent)} t where batch_id is not null and ($1::uuid is null or workspace_id = $1)
      window batch as (partition by workspace_id, batch_id order by position)) t
    where (type = 'TRANSFER' and case
        when before is null then id = batch_id
        else position::numeric = before::numeric + 1::numeric and created_at = earlier end) is not true
    order by workspace_id, position`,
  violation: ([workspace, id, before]) => ({
    message:
      before === null
        ? 'it is the first transfer of its batch, and its batch_id does not name it'
        : `it does not directly follow position ${before} of its batch, at the same time`,
    ids: rowIds('transfer', workspace, id),
  }),
})

/** The creation times of numbered rows follow their numbers. */
function timesInOrder(table: 'hold' | 'wallet'): Check {
  return {
    rule: `${table}-time`,
    sql: `
      select workspace_id, id, created_at, earlier from (
        select workspace_id, id, number, created_at,
          lag(created_at) over (partition by workspace_id order by number) as earlier
        from {here}.${table} where number is not null and ($1::uuid is null or workspace_id = $1)) numbered
      where created_at < earlier
      order by workspace_id, number`,
    violation: ([workspace, id, createdAt, earlier]) => ({
      message: `its time is ${createdAt}, that of the one before it ${earlier}`,
      ids: rowIds(table, workspace, id),
    }),
  }
}

const lastActions = `
  select distinct on (workspace_id) coalesce(workspace_id, '${noWorkspace}') as id, position, mac
  from {here}.audit where $1::uuid is null or workspace_id = $1
  order by workspace_id, position desc`

/** By one look-up for each audit. The replay has seen the actions of others, unless they are old. */
const lastNewActions = `
  select id, last.position, last.mac
  from (select workspace_id as id from {here}.audit_head union select id from {here}.workspace) known
  cross join lateral (
    select a.position, a.mac from {here}.audit a where a.workspace_id = known.id order by a.position desc limit 1) last
  union all (
    select '${noWorkspace}', position, mac from {here}.audit where workspace_id is null order by position desc limit 1)`

const auditHeads = (extent: Extent): Check => ({
  rule: 'audit-head',
  sql: `
    with last as (${extent === 'WHOLE' ? lastActions : lastNewActions}),
    head as (
      select workspace_id as id, position, mac
      from {here}.audit_head where ($1::uuid is null or workspace_id = $1) and position <> 0)
    select nullif(coalesce(head.id, last.id), '${noWorkspace}'), head.position, last.position
    from head full join last on last.id = head.id
    where (head.position, head.mac) is distinct from (last.position, last.mac)
    order by 1`,
  violation: ([workspace, head, last]) => ({
    message: `its audit ends with action ${last ?? 'none'}, but its head names action ${head ?? 'none'} or another MAC`,
    ids: workspace === null ? {} : workspaceIds(workspace),
  }),
})
