import type { KeyObject } from 'node:crypto'
import { type LedgerRule, listedViolations, type Uuid } from '@workspace-wallet/contract'
import type { Snapshot, TextRow } from '../../database/snapshot.ts'
import { journalColumns } from '../../database/tables/journal.ts'
import { arrayReader, selectColumns, withMac } from '../../database/tables/table.ts'
import { emptyJournalHead, journalMac } from '../../ledger/chain/journal.ts'
import { type Check, rowIds, runChecks, workspaceIds } from './checks.ts'
import type { Findings } from './findings/findings.ts'
import { wholeOf } from './values.ts'

type Scope = { snapshot: Snapshot; chainKey: KeyObject; workspaceId: Uuid<'workspace'> | null; findings: Findings }

/** Checks the event log of each workspace, which consists of its transfers and its journal, and the end that its ledger names. */
export async function checkLog({ snapshot, chainKey, workspaceId, findings }: Scope): Promise<void> {
  await replayJournal(snapshot, chainKey, workspaceId, findings)
  await checkEvents(snapshot, workspaceId, findings)
  await runChecks(snapshot, workspaceId, findings, [positions, journalHeads, journalTimes, walletEvents])
}

const storedJournal = withMac(journalColumns)
const readEntry = arrayReader(storedJournal, Object.keys(storedJournal))
const journalSql = `
  select ${selectColumns(storedJournal, 'j')}
  from public.journal j where $1::uuid is null or workspace_id = $1
  order by workspace_id, position`

/** After a violation the next entry may continue from the stored MAC, or from the one that the entry should have had. */
async function replayJournal(
  snapshot: Snapshot,
  chainKey: KeyObject,
  workspaceId: Uuid<'workspace'> | null,
  findings: Findings,
): Promise<void> {
  let workspace: string | undefined
  let heads: Buffer[] = []
  for await (const rows of snapshot.batches(journalSql, [workspaceId]))
    for (const { mac, ...entry } of rows.map(readEntry)) {
      if (entry.workspaceId !== workspace) heads = [emptyJournalHead]
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

/**
 * One pass over all events in the order of their positions finds what breaks any of these rules. A count of orders continues
 * from that of the event before, or is the number of orders so far: one that is wrong does not make all later ones wrong.
 * After a gap in the positions, which is reported, no count is expected.
 */
const eventsSql = `
  with event as (
    select workspace_id, position, id, order_count, (type is not distinct from 'TRANSFER')::integer as is_order,
      true as is_transfer, created_at
    from public.transfer where $1::uuid is null or workspace_id = $1
    union all
    select workspace_id, position, id, order_count, 0, false, created_at
    from public.journal where $1::uuid is null or workspace_id = $1),
  compared as (
    select *, lag(position, 1, 0::bigint) over log::numeric + 1::numeric as expected,
      lag(order_count, 1, 0::bigint) over log::numeric + is_order::numeric as expected_count, sum(is_order) over log as counted,
      lag(created_at) over log as earlier
    from event
    window log as (partition by workspace_id order by position)),
  -- First a filter without text, which would be made for each event.
  suspect as (
    select * from compared
    where position::numeric is distinct from expected or (order_count::numeric in (expected_count, counted::numeric)) is not true
      or created_at < earlier),
  broken as (
    select rule, workspace_id, position, id, is_transfer, found, required
    from suspect, lateral (values
      ('log-position', position::numeric is distinct from expected, position::text, expected::text),
      (case when is_transfer then 'transfer-order-count' else 'journal-order-count' end,
        position::numeric = expected and (order_count::numeric in (expected_count, counted::numeric)) is not true, order_count::text, expected_count::text),
      (case when is_transfer then 'transfer-time' else 'journal-time' end,
        created_at < earlier, created_at::text, earlier::text)) as check_of (rule, is_broken, found, required)
    where is_broken)
  select rule, workspace_id, position, id, is_transfer, found, required, violations from (
    select *, row_number() over (partition by rule order by workspace_id, position) as place,
      count(*) over (partition by rule) as violations from broken) listed
  where place <= ${listedViolations}
  order by rule, workspace_id, position`

async function checkEvents(
  snapshot: Snapshot,
  workspaceId: Uuid<'workspace'> | null,
  findings: Findings,
): Promise<void> {
  const violations = new Map<LedgerRule, number>()
  for (const row of await snapshot.rows(eventsSql, [workspaceId])) {
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

function messageOf(rule: string, found: string, required: string): string {
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
    from public.ledger l
    left join lateral (
      select t.position from public.transfer t where t.workspace_id = l.workspace_id
      order by t.position desc nulls last limit 1) t on true
    left join lateral (
      select j.position from public.journal j where j.workspace_id = l.workspace_id
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
  public.ledger l left join lateral (
    select j.position, j.mac, j.created_at from public.journal j where j.workspace_id = l.workspace_id
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
    from (select * from public.wallet where kind = 'CUSTOMER' and ($1::uuid is null or workspace_id = $1)) w
    full join (
      select distinct on (workspace_id, wallet_id) workspace_id, wallet_id, status,
        first_value(type) over life as first, first_value(created_at) over life as created_at,
        count(*) filter (where type = 'wallet.created') over life as creations
      from public.journal where hold_id is null and ($1::uuid is null or workspace_id = $1)
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
