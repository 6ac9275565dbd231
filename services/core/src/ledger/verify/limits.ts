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

/** The transfers of its day sum to `spent`, and no transfer has a later day. Reads the transfers once for all limits. */
const spent: Check = {
  rule: 'limit-spent',
  sql: `
    select s.workspace_id, s.subject, s.currency, s.day, s.spent, coalesce(f.spent, 0), coalesce(f.later, 0)
    from public.spending_limit s left join (
      select l.workspace_id, l.subject, l.currency, sum(t.amount) filter (where t.day = l.day) as spent,
        count(*) filter (where t.day > l.day) as later
      from (
          select workspace_id, unnest(array[actor, 'wallet:' || source_wallet_id]) as subject, currency, position, amount,
            (created_at at time zone 'UTC')::date as day
          from public.transfer where type <> 'DEPOSIT' and ($1::uuid is null or workspace_id = $1)) t
        join public.spending_limit l on l.workspace_id = t.workspace_id and l.subject = t.subject
          and l.currency = t.currency and l.counted_from < t.position and l.day <= t.day
      group by l.workspace_id, l.subject, l.currency) f
      on f.workspace_id = s.workspace_id and f.subject = s.subject and f.currency = s.currency
    where num_nonnulls(s.per_transfer, s.per_day) > 0 and ($1::uuid is null or s.workspace_id = $1)
      and (s.spent is distinct from coalesce(f.spent, 0) or f.later > 0)
    order by s.workspace_id, s.subject, s.currency`,
  violation: ([workspace, subject, currency, day, counted, found, later]) => ({
    message: `it counts ${counted} on ${day}, but ${found} was spent, and ${later} transfers are later`,
    ids: { ...workspaceIds(workspace), limit: `${subject}`, currency: `${currency}` },
  }),
}
