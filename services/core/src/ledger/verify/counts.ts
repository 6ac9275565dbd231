import type { Violation } from '@workspace-wallet/contract'
import type { Snapshot, TextRow } from '../../database/snapshot.ts'
import { type Findings, publicId } from './findings.ts'

/**
 * A check that needs no key, so PostgreSQL does it. The statement returns the rows that break its rule; its one parameter
 * is the workspace, null for all. Sums with damaged numbers are numeric, so that they cannot overflow.
 */
type Check = { sql: string; violation: (row: TextRow) => Violation }

export type RowCounts = { workspaces: number; wallets: number; transfers: number; flows: number }

/** The number of rows to verify. Flows are not counted here: their number is the sum of the wallets' sequences. */
export async function countRows(snapshot: Snapshot, workspaceId: string | null): Promise<RowCounts> {
  const [row] = await snapshot.rows(
    `select
       (select count(*) from public.workspace where $1::uuid is null or id = $1),
       (select count(*) from public.wallet where $1::uuid is null or workspace_id = $1),
       (select count(*) from public.transfer where $1::uuid is null or workspace_id = $1),
       (select coalesce(sum(sequence), 0) from public.wallet where $1::uuid is null or workspace_id = $1)`,
    [workspaceId],
  )
  const [workspaces, wallets, transfers, flows] = row!.map(Number)
  return { workspaces: workspaces!, wallets: wallets!, transfers: transfers!, flows: flows! }
}

/** Checks counters, numbers, names and times of everything except flows. */
export function checkNumbers(snapshot: Snapshot, workspaceId: string | null, findings: Findings): Promise<void> {
  return run(snapshot, workspaceId, findings, [
    ledgerOfWorkspace,
    walletNumbers,
    walletCounts,
    externalWallets,
    transferNumbers,
    numberedTypes,
    sameWallets,
    orderCounts,
    timesInOrder('transfer'),
    bizIds,
    timesInOrder('wallet'),
    auditHeads,
  ])
}

const ledgerOfWorkspace: Check = {
  sql: `
    select n.id, w.id is not null
    from (select id from public.workspace union select workspace_id from public.ledger union select workspace_id from public.wallet) n
    left join public.workspace w on w.id = n.id
    left join public.ledger l on l.workspace_id = n.id
    where ($1::uuid is null or n.id = $1) and (w.id is null or l.last_posted_at is null)
    order by n.id`,
  violation: ([workspace, exists]) => ({
    rule: 'workspace-ledger',
    message:
      exists === 't' ? 'it has no ledger, or one without a time' : 'it has a ledger or wallets but does not exist',
    ids: workspaceIds(workspace),
  }),
}

const walletNumbers: Check = {
  sql: `
    select workspace_id, id, number, expected from (
      select workspace_id, id, number, case kind
        when 'CUSTOMER' then
          lag(number, 1, 0::bigint) over (partition by workspace_id, kind order by number)::numeric + 1 end as expected
      from public.wallet where $1::uuid is null or workspace_id = $1) w
    where number is distinct from expected
    order by workspace_id, number`,
  violation: ([workspace, id, number, expected]) => ({
    rule: 'wallet-number',
    message: `its number is ${number}, expected ${expected}`,
    ids: rowIds('wallet', workspace, id),
  }),
}

const walletCounts: Check = {
  sql: `
    select l.workspace_id, l.wallet_count, coalesce(w.found, 0)
    from public.ledger l left join (
      select workspace_id, count(*) as found from public.wallet
      where kind = 'CUSTOMER' and ($1::uuid is null or workspace_id = $1)
      group by workspace_id) w on w.workspace_id = l.workspace_id
    where ($1::uuid is null or l.workspace_id = $1) and l.wallet_count is distinct from coalesce(w.found, 0)
    order by l.workspace_id`,
  violation: ([workspace, counted, found]) => ({
    rule: 'ledger-wallet-count',
    message: `its ledger's wallet_count is ${counted}, but it has ${found} customers' wallets`,
    ids: workspaceIds(workspace),
  }),
}

const externalWallets: Check = {
  sql: `
    select workspace_id, currency, count(*) filter (where kind = 'EXTERNAL')
    from public.wallet where $1::uuid is null or workspace_id = $1
    group by workspace_id, currency having count(*) filter (where kind = 'EXTERNAL') <> 1
    order by workspace_id, currency`,
  violation: ([workspace, currency, found]) => ({
    rule: 'wallet-external',
    message: `it has ${found} EXTERNAL wallets in ${currency}`,
    ids: { ...workspaceIds(workspace), currency: `${currency}` },
  }),
}

const transferNumbers: Check = {
  sql: `
    select workspace_id, id, number, expected from (
      select workspace_id, id, number,
        lag(number, 1, 0::bigint) over (partition by workspace_id order by number)::numeric + 1 as expected
      from public.transfer where number is not null and ($1::uuid is null or workspace_id = $1)) t
    where number <> expected
    order by workspace_id, number`,
  violation: ([workspace, id, number, expected]) => ({
    rule: 'transfer-number',
    message: `its number is ${number}, expected ${expected}`,
    ids: rowIds('transfer', workspace, id),
  }),
}

const numberedTypes: Check = {
  sql: `
    select workspace_id, id, type, number from public.transfer
    where (type is not distinct from 'TRANSFER') <> (number is not null) and ($1::uuid is null or workspace_id = $1)
    order by workspace_id, id`,
  violation: ([workspace, id, type, number]) => ({
    rule: 'transfer-number',
    message: `its type is ${type}, but its number is ${number}`,
    ids: rowIds('transfer', workspace, id),
  }),
}

const sameWallets: Check = {
  sql: `
    select workspace_id, id from public.transfer
    where source_wallet_id is not distinct from target_wallet_id and ($1::uuid is null or workspace_id = $1)
    order by workspace_id, id`,
  violation: ([workspace, id]) => ({
    rule: 'transfer-wallets',
    message: 'its source is its target',
    ids: rowIds('transfer', workspace, id),
  }),
}

const orderCounts: Check = {
  sql: `
    select l.workspace_id, l.order_count, coalesce(t.found, 0)
    from public.ledger l left join (
      select workspace_id, count(number) as found from public.transfer
      where $1::uuid is null or workspace_id = $1
      group by workspace_id) t on t.workspace_id = l.workspace_id
    where ($1::uuid is null or l.workspace_id = $1) and l.order_count is distinct from coalesce(t.found, 0)
    order by l.workspace_id`,
  violation: ([workspace, counted, found]) => ({
    rule: 'ledger-order-count',
    message: `its ledger's order_count is ${counted}, but it has ${found} transfers between wallets`,
    ids: workspaceIds(workspace),
  }),
}

const bizIds: Check = {
  sql: `
    select workspace_id, min(id::text), biz_id, count(*)
    from public.transfer where biz_id is not null and ($1::uuid is null or workspace_id = $1)
    group by workspace_id, biz_id having count(*) > 1
    order by workspace_id, biz_id`,
  violation: ([workspace, id, bizId, found]) => ({
    rule: 'transfer-biz-id',
    message: `${found} transfers have the bizId ${bizId}`,
    ids: { ...rowIds('transfer', workspace, id), bizId: `${bizId}` },
  }),
}

/** The creation times of numbered rows follow their numbers. */
function timesInOrder(table: 'transfer' | 'wallet'): Check {
  return {
    sql: `
      select workspace_id, id, created_at, earlier from (
        select workspace_id, id, number, created_at,
          lag(created_at) over (partition by workspace_id order by number) as earlier
        from public.${table} where number is not null and ($1::uuid is null or workspace_id = $1)) numbered
      where created_at < earlier
      order by workspace_id, number`,
    violation: ([workspace, id, createdAt, earlier]) => ({
      rule: `${table}-time`,
      message: `its time is ${createdAt}, that of the one before it ${earlier}`,
      ids: rowIds(table, workspace, id),
    }),
  }
}

const auditHeads: Check = {
  sql: `
    with last as (
      select distinct on (workspace_id) coalesce(workspace_id, '00000000-0000-0000-0000-000000000000') as id, position, mac
      from public.audit where $1::uuid is null or workspace_id = $1
      order by workspace_id, position desc),
    head as (
      select workspace_id as id, position, mac
      from public.audit_head where ($1::uuid is null or workspace_id = $1) and position <> 0)
    select nullif(coalesce(head.id, last.id), '00000000-0000-0000-0000-000000000000'), head.position, last.position
    from head full join last on last.id = head.id
    where (head.position, head.mac) is distinct from (last.position, last.mac)
    order by 1`,
  violation: ([workspace, head, last]) => ({
    rule: 'audit-head',
    message: `its audit ends with action ${last ?? 'none'}, but its head names action ${head ?? 'none'} or another MAC`,
    ids: workspace === null ? {} : workspaceIds(workspace),
  }),
}

const rowsPerCheck = 20

async function run(
  snapshot: Snapshot,
  workspaceId: string | null,
  findings: Findings,
  checks: readonly Check[],
): Promise<void> {
  for (const { sql, violation } of checks) {
    const rows = await snapshot.rows(`select *, count(*) over () from (${sql}) broken limit ${rowsPerCheck}`, [
      workspaceId,
    ])
    for (const row of rows) findings.add(violation(row))
    const found = Number(rows[0]?.at(-1) ?? 0)
    findings.addUnlisted(found - rows.length)
  }
}

type Column = TextRow[number] | undefined

function workspaceIds(workspace: Column) {
  return { workspaceId: publicId('workspace', workspace ?? null) }
}

function rowIds(kind: 'transfer' | 'wallet', workspace: Column, id: Column) {
  return { ...workspaceIds(workspace), [`${kind}Id`]: publicId(kind, id ?? null) }
}
