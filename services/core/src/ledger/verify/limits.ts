import type { Snapshot } from '../../database/snapshot.ts'
import { type Check, ledgerCount, runChecks, workspaceIds } from './checks.ts'
import type { Findings } from './findings.ts'

/** Checks the number of limits, and what each of them counts. */
export function checkLimits(snapshot: Snapshot, workspaceId: string | null, findings: Findings): Promise<void> {
  return runChecks(snapshot, workspaceId, findings, [counts, spent])
}

const counts = ledgerCount('ledger-limit-count', {
  counter: 'limit_count',
  table: 'spending_limit',
  where: 'num_nonnulls(per_transfer, per_day) > 0',
  what: 'limits',
})

/** The transfers of its day sum to `spent`, and no transfer has a later day. */
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
