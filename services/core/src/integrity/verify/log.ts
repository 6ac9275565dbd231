import { type LedgerRule, listedViolations } from '@workspace-wallet/contract'
import type { TextRow } from '../../database/snapshot.ts'
import { journalColumns } from '../../database/tables/journal.ts'
import { arrayReader, selectColumns, withMac } from '../../database/tables/table.ts'
import { emptyJournalHead, journalMac } from '../../ledger/chain/journal.ts'
import { type Check, rowIds, runChecks, workspaceIds } from './checks.ts'
import { type Extent, eventsOf, noWorkspace } from './extent.ts'
import type { Scope } from './scope.ts'
import { wholeOf } from './values.ts'

/** Checks the event log of each workspace, which consists of its transfers and its journal, and the end that its ledger names. */
export async function checkLog(scope: Scope): Promise<void> {
  const { snapshot, workspaceId, findings, extent } = scope
  await replayJournal(scope)
  await checkEvents(scope)
  const continued = extent === 'WHOLE' ? [] : [verifiedLogs, verifiedAudits]
  const events = extent === 'WHOLE' ? walletEvents : newWalletEvents
  await runChecks(snapshot, workspaceId, findings, [positions, journalHeads, journalTimes, events, ...continued])
}

const storedJournal = withMac(journalColumns)
const readEntry = arrayReader(storedJournal, Object.keys(storedJournal))
const journalSql = (extent: Extent) => `
  select ${selectColumns(storedJournal, 'j')}
  from ${eventsOf('journal', extent)} j where $1::uuid is null or workspace_id = $1
  order by workspace_id, position`

/** After a violation the next entry may continue from the stored MAC, or from the one that the entry should have had. */
async function replayJournal({ snapshot, chainKey, workspaceId, findings, extent, baseline }: Scope): Promise<void> {
  let workspace: string | undefined
  let heads: Buffer[] = []
  for await (const rows of snapshot.batches(journalSql(extent), [workspaceId]))
    for (const { mac, ...entry } of rows.map(readEntry)) {
      if (entry.workspaceId !== workspace) {
        const verified = baseline.get(entry.workspaceId)
        heads = [verified ? Buffer.from(verified.journalHead, 'hex') : emptyJournalHead]
      }
      workspace = entry.workspaceId
      const expected = heads.map(head => journalMac(chainKey, entry, head))
      const isExpected = expected.some(each => each.equals(mac))
      if (!isExpected)
        findings.add({
          rule: 'journal-chain',
          message: 'its MAC does not match its content and the journal entry before it',
          ids: eventIds(workspace, entry.id, `${entry.position}`, false),
        })
      heads = isExpected ? [mac] : [mac, expected[0]!]
    }
}

/** Whether `mintId` can have returned the ID of the event; null for an ID that is null. */
const hasMintedForm = `
  (uuid_extract_version(id) = 7 and get_byte(uuid_send(id), 15) & 1 = (not is_transfer)::integer)`

/**
 * One pass over all events in the order of their positions finds what breaks any of these rules. A count of orders continues
 * from that of the event before, or is the number of orders so far: one that is wrong does not make all later ones wrong.
 * After a gap in the positions, which is reported, no count is expected.
 */
const eventsSql = (extent: Extent) => `
  with new_event as (
    select workspace_id, position, id, order_count, (type is not distinct from 'TRANSFER')::integer as is_order,
      true as is_transfer, created_at
    from ${eventsOf('transfer', extent)} t where $1::uuid is null or workspace_id = $1
    union all
    select workspace_id, position, id, order_count, 0, false, created_at
    from ${eventsOf('journal', extent)} j where $1::uuid is null or workspace_id = $1),
  event as (${extent === 'WHOLE' ? fromTheBeginning : sinceVerified}),
  compared as (
    select *, lag(position, 1, begins_at) over log::numeric + 1::numeric as expected,
      lag(order_count, 1, orders_before) over log::numeric + is_order::numeric as expected_count,
      orders_before + sum(is_order) over log as counted, lag(created_at, 1, time_before) over log as earlier
    from event
    window log as (partition by workspace_id order by position)),
  -- First a filter without text, which would be made for each event.
  suspect as (
    select * from compared
    where position::numeric is distinct from expected or (order_count::numeric in (expected_count, counted::numeric)) is not true
      or created_at < earlier or ${hasMintedForm} is not true),
  broken as (
    select rule, workspace_id, position, id, is_transfer, found, required
    from suspect, lateral (values
      ('log-position', position::numeric is distinct from expected, position::text, expected::text),
      (case when is_transfer then 'transfer-order-count' else 'journal-order-count' end,
        position::numeric = expected and (order_count::numeric in (expected_count, counted::numeric)) is not true, order_count::text, expected_count::text),
      (case when is_transfer then 'transfer-time' else 'journal-time' end,
        created_at < earlier, created_at::text, earlier::text),
      (case when is_transfer then 'transfer-id' else 'journal-id' end,
        ${hasMintedForm} is not true, id::text, (not is_transfer)::integer::text)) as check_of (rule, is_broken, found, required)
    where is_broken)
  select rule, workspace_id, position, id, is_transfer, found, required, violations from (
    select *, row_number() over (partition by rule order by workspace_id, position) as place,
      count(*) over (partition by rule) as violations from broken) listed
  where place <= ${listedViolations}
  order by rule, workspace_id, position`

async function checkEvents({ snapshot, workspaceId, findings, extent }: Scope): Promise<void> {
  const violations = new Map<LedgerRule, number>()
  for (const row of await snapshot.rows(eventsSql(extent), [workspaceId])) {
    const [name, workspace, position, id, isTransfer, found, required, violationsOfRule] = row
    const rule = name as LedgerRule
    findings.add({
      rule,
      message: messageOf(rule, found!, required!),
      ids: eventIds(workspace, id, position, isTransfer === 't'),
    })
    violations.set(rule, Number(violationsOfRule))
  }
  for (const [rule, count] of violations) findings.addUnlisted(rule, count - Math.min(count, listedViolations))
}

const fromTheBeginning = `
  select *, 0::bigint as begins_at, 0::bigint as orders_before, null::timestamptz as time_before from new_event`

const sinceVerified = `
  select e.*, coalesce(v.position, 0) as begins_at, coalesce(v.order_count, 0) as orders_before, v.posted_at as time_before
  from new_event e left join {here}.verified_ledger v on v.workspace_id = e.workspace_id`

function messageOf(rule: string, found: string, required: string): string {
  if (rule.endsWith('-id')) return `its UUID is ${found}, expected a UUIDv7 whose last bit is ${required}`
  if (rule.endsWith('-time')) return `its time is ${found}, that of the event before it ${required}`
  return `its ${rule === 'log-position' ? 'position' : 'order_count'} is ${found}, expected ${required}`
}

function eventIds(
  workspace: TextRow[number] | undefined,
  id: TextRow[number] | undefined,
  position: TextRow[number] | undefined,
  isTransfer: boolean,
) {
  const ids = rowIds(isTransfer ? 'transfer' : 'event', workspace, id)
  const whole = wholeOf(position ?? null)
  return { ...ids, position: Number.isNaN(whole) ? `${position}` : whole }
}

const positions: Check = {
  rule: 'ledger-position',
  sql: `
    select l.workspace_id, l.position, greatest(t.position, j.position, 0)
    from {here}.ledger l
    left join lateral (
      select t.position from {here}.transfer t where t.workspace_id = l.workspace_id
      order by t.position desc nulls last limit 1) t on true
    left join lateral (
      select j.position from {here}.journal j where j.workspace_id = l.workspace_id
      order by j.position desc nulls last limit 1) j on true
    where ($1::uuid is null or l.workspace_id = $1) and l.position is distinct from greatest(t.position, j.position, 0)
    order by l.workspace_id`,
  violation: ([workspace, named, last]) => ({
    message: `its ledger's position is ${named}, but its last event has position ${last}`,
    ids: workspaceIds(workspace),
  }),
}

/** The last journal entry of each ledger. */
const lastEntries = `
  {here}.ledger l left join lateral (
    select j.position, j.mac, j.created_at from {here}.journal j where j.workspace_id = l.workspace_id
    order by j.position desc nulls last limit 1) last on true`

const journalHeads: Check = {
  rule: 'journal-head',
  sql: `
    select l.workspace_id, last.position from ${lastEntries}
    where ($1::uuid is null or l.workspace_id = $1) and l.journal_head is distinct from coalesce(last.mac, '')
    order by l.workspace_id`,
  violation: ([workspace, position]) => ({
    message: `its ledger's journal_head is not the MAC of its last journal entry, at position ${position ?? 'none'}`,
    ids: workspaceIds(workspace),
  }),
}

const journalTimes: Check = {
  rule: 'ledger-time',
  sql: `
    select l.workspace_id, l.last_posted_at, last.created_at from ${lastEntries}
    where ($1::uuid is null or l.workspace_id = $1) and l.last_posted_at < last.created_at
    order by l.workspace_id`,
  violation: ([workspace, lastPostedAt, createdAt]) => ({
    message: `its ledger's last_posted_at is ${lastPostedAt}, and the time of its last journal entry ${createdAt}`,
    ids: workspaceIds(workspace),
  }),
}

const walletEvents: Check = {
  rule: 'wallet-journal',
  sql: `
    select coalesce(w.workspace_id, j.workspace_id), coalesce(w.id, j.wallet_id), w.status, j.status, j.first
    from (select * from {here}.wallet where kind = 'CUSTOMER' and ($1::uuid is null or workspace_id = $1)) w
    full join (
      select distinct on (workspace_id, wallet_id) workspace_id, wallet_id, status,
        first_value(type) over life as first, first_value(created_at) over life as created_at,
        count(*) filter (where type = 'wallet.created') over life as creations
      from {here}.journal where hold_id is null and ($1::uuid is null or workspace_id = $1)
      window life as (partition by workspace_id, wallet_id order by position)
      order by workspace_id, wallet_id, position desc) j on j.workspace_id = w.workspace_id and j.wallet_id = w.id
    where (j.first = 'wallet.created' and j.creations = 1 and j.created_at = w.created_at and j.status = w.status) is not true
    order by 1, 2`,
  violation: ([workspace, id, status, last, first]) => ({
    message:
      status === null
        ? 'it is in the journal, and its row does not exist'
        : `its status is ${status}, and ${last ?? 'none'} in the journal, where its first entry is ${first ?? 'none'}`,
    ids: rowIds('wallet', workspace, id),
  }),
}

/** The wallets that have new events: an earlier status is in the audit, under the digest of the last verification. */
const newWalletEvents: Check = {
  rule: 'wallet-journal',
  sql: `
    select j.workspace_id, j.wallet_id, w.status, j.status, j.first
    from (
      select distinct on (workspace_id, wallet_id) workspace_id, wallet_id, status,
        first_value(type) over life as first, first_value(created_at) over life as created_at,
        count(*) filter (where type = 'wallet.created') over life as creations
      from ${eventsOf('journal', 'INCREMENTAL')} e where hold_id is null and ($1::uuid is null or workspace_id = $1)
      window life as (partition by workspace_id, wallet_id order by position)
      order by workspace_id, wallet_id, position desc) j
    left join {here}.wallet w on w.workspace_id = j.workspace_id and w.id = j.wallet_id and w.kind = 'CUSTOMER'
    left join {here}.verified_ledger v on v.workspace_id = j.workspace_id
    where (j.status = w.status and case when w.created_at > coalesce(v.posted_at, '-infinity')
      then j.first = 'wallet.created' and j.creations = 1 and j.created_at = w.created_at else j.creations <= 1 end) is not true
    order by 1, 2`,
  violation: walletEvents.violation,
}

const verifiedLogs: Check = {
  rule: 'verified-log',
  sql: `
    select v.workspace_id, v.position, l.position
    from {here}.verified_ledger v
    left join {here}.ledger l on l.workspace_id = v.workspace_id
    left join lateral (
      select j.mac from {here}.journal j where j.workspace_id = v.workspace_id and j.position <= v.position
      order by j.position desc limit 1) last on true
    where v.workspace_id <> '${noWorkspace}' and ($1::uuid is null or v.workspace_id = $1)
      and (l.position >= v.position and l.order_count >= v.order_count and coalesce(last.mac, '') = v.journal_head) is not true
    order by v.workspace_id`,
  violation: ([workspace, verified, now]) => ({
    message: `its event log is at position ${now ?? 'none'}, and does not continue that of the last verification, which ended at ${verified}`,
    ids: workspaceIds(workspace),
  }),
}

const verifiedAudits: Check = {
  rule: 'verified-audit',
  sql: `
    select nullif(v.workspace_id, '${noWorkspace}'), v.audit_position
    from {here}.verified_ledger v
    left join lateral (
      select mac from {here}.audit a where a.workspace_id = v.workspace_id and a.position = v.audit_position
      union all
      select mac from {here}.audit a
      where v.workspace_id = '${noWorkspace}' and a.workspace_id is null and a.position = v.audit_position
      limit 1) last on true
    where ($1::uuid is null or v.workspace_id = $1) and coalesce(last.mac, '') <> v.audit_mac
    order by v.workspace_id`,
  violation: ([workspace, position]) => ({
    message: `action ${position} of its audit, with which the last verification ended, is another one or no longer exists`,
    ids: workspace === null ? {} : workspaceIds(workspace),
  }),
}
