import type { Snapshot } from '../../database/snapshot.ts'
import { type Check, runChecks, workspaceIds } from './checks.ts'
import type { Findings } from './findings.ts'

/** Checks the number of limits, and what each of them counts. */
export function checkLimits(snapshot: Snapshot, workspaceId: string | null, findings: Findings): Promise<void> {
  return runChecks(snapshot, workspaceId, findings, [counts, spent])
}

const counts: Check = {
  sql: `
    select l.workspace_id, l.limit_count, coalesce(s.found, 0)
    from public.ledger l left join (
      select workspace_id, count(*) as found from public.spending_limit
      where num_nonnulls(per_transfer, per_day) > 0 and ($1::uuid is null or workspace_id = $1)
      group by workspace_id) s on s.workspace_id = l.workspace_id
    where ($1::uuid is null or l.workspace_id = $1) and l.limit_count is distinct from coalesce(s.found, 0)
    order by l.workspace_id`,
  violation: ([workspace, counted, found]) => ({
    rule: 'ledger-limit-count',
    message: `its ledger's limit_count is ${counted}, but it has ${found} limits`,
    ids: workspaceIds(workspace),
  }),
}

/** Nothing may be spent after the day that a limit counts, either. */
const spent: Check = {
  sql: `
    select s.workspace_id, s.subject, s.currency, s.day, s.spent, t.spent, t.later
    from public.spending_limit s, lateral (
      select coalesce(sum(t.amount) filter (where (t.created_at at time zone 'UTC')::date = s.day), 0) as spent,
        count(*) filter (where (t.created_at at time zone 'UTC')::date > s.day) as later
      from public.transfer t
      where t.workspace_id = s.workspace_id and t.currency = s.currency and t.position > s.counted_from
        and t.type <> 'DEPOSIT' and s.subject in (t.actor, 'wallet:' || t.source_wallet_id)) t
    where num_nonnulls(s.per_transfer, s.per_day) > 0 and ($1::uuid is null or s.workspace_id = $1)
      and (s.spent is distinct from t.spent or t.later > 0)
    order by s.workspace_id, s.subject, s.currency`,
  violation: ([workspace, subject, currency, day, counted, found, later]) => ({
    rule: 'limit-spent',
    message: `it counts ${counted} on ${day}, but ${found} was spent, and ${later} transfers are later`,
    ids: { ...workspaceIds(workspace), limit: `${subject}`, currency: `${currency}` },
  }),
}
