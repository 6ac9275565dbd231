import { idPattern, uuidPattern } from '@workspace-wallet/contract'
import { bounded } from './bounded.ts'
import { signature } from './signature.ts'

/** What is between `^` and `$`. */
const formOf = (pattern: string) => pattern.slice(1, -1)

/**
 * Limits of what API keys and wallets may spend, and the functions that write them. Like those of ledger-rows.ts, they run
 * with the rights of the owner of the tables. Core checks the MACs of limits, and decides whether a transfer exceeds one.
 */
export const limits = `
  create table spending_limit (
    workspace_id uuid not null references ledger,
    -- \`key:ak_…\`, or \`wallet:\` and a UUID. Without the check, an operator could not name a forged limit to clear it.
    subject text collate "C" not null check (subject ~ '^(key:${formOf(idPattern('apiKey'))}|wallet:${formOf(uuidPattern.source)})$'),
    currency text collate "C" not null references currency,
    -- Null: unlimited. A row without both is a cleared limit: a deleted row could be inserted again with its old MAC.
    per_transfer positive_amount,
    per_day positive_amount,
    -- The last day (UTC) on which something was spent, and how much.
    day date not null check (isfinite(day)),
    spent bounded_amount not null check (spent >= 0),
    -- The position of the ledger when counting began.
    counted_from bigint not null,
    created_at bounded_time not null,
    updated_at bounded_time not null,
    ${signature},
    primary key (workspace_id, subject, currency),
    ${bounded(1024, 'subject', 'currency')}
  ) with (fillfactor = 50);

  create trigger spending_limit_is_kept before delete on spending_limit for each row execute function refuse_change();
  create trigger spending_limit_is_not_truncated before truncate on spending_limit for each statement
    execute function refuse_change();

  -- Sets, changes or clears a limit. The row of the ledger changes too, so that no core posts from a remembered ledger.
  create function set_limit(workspace uuid, limit_subject text, limit_currency text, new_per_transfer numeric,
    new_per_day numeric, new_day date, new_spent numeric, new_counted_from bigint, at timestamptz, new_mac bytea,
    new_limit_count bigint, new_ledger_mac bytea) returns void language plpgsql
    security definer set search_path = pg_catalog, pg_temp as $$
  declare
    clock timestamptz := clock_timestamp();
  begin
    update {schema}.ledger l
    set limit_count = new_limit_count, last_posted_at = at, revision = l.revision + 1, mac = new_ledger_mac
    where l.workspace_id = workspace and l.status in ('OPEN', 'HALTED') and {schema}.is_now(at, l.last_posted_at, clock)
      and new_counted_from <= l.position;
    if not found then
      perform {schema}.refuse_write('a limit');
    end if;
    insert into {schema}.spending_limit as s (workspace_id, subject, currency, per_transfer, per_day, day, spent,
        counted_from, created_at, updated_at, revision, mac)
      values (workspace, limit_subject, limit_currency, new_per_transfer, new_per_day, new_day, new_spent,
        new_counted_from, at, at, 1, new_mac)
      on conflict (workspace_id, subject, currency) do update
        set per_transfer = excluded.per_transfer, per_day = excluded.per_day, day = excluded.day, spent = excluded.spent,
          counted_from = excluded.counted_from, updated_at = at, revision = s.revision + 1, mac = excluded.mac;
    if new_limit_count is distinct from (
      select count(*) from {schema}.spending_limit s
      where s.workspace_id = workspace and num_nonnulls(s.per_transfer, s.per_day) > 0)
    then
      perform {schema}.refuse_write('a limit');
    end if;
  end $$;

  -- Writes what transfers spend, in the transaction that posts them: each limit with its present MAC and its new values.
  -- Within a day, a sum only grows.
  create function count_spending(limits jsonb) returns void language plpgsql
    security definer set search_path = pg_catalog, pg_temp as $$
  declare
    found_count bigint;
  begin
    update {schema}.spending_limit s
    set day = n.day, spent = n.spent, revision = s.revision + 1, mac = n.mac
    from jsonb_to_recordset(limits) as n (workspace_id uuid, subject text, currency text, old_mac bytea, day date,
        spent numeric, mac bytea)
    cross join lateral (select row.ctid from {schema}.spending_limit row
      where row.workspace_id = n.workspace_id and row.subject = n.subject and row.currency = n.currency limit 1) found
    where s.ctid = found.ctid and s.mac = n.old_mac
      and num_nonnulls(s.per_transfer, s.per_day) > 0 and (n.day > s.day or n.day = s.day and n.spent >= s.spent)
      and n.spent <= coalesce(s.per_day, 'Infinity');
    get diagnostics found_count = row_count;
    if found_count is distinct from jsonb_array_length(limits) then
      perform {schema}.refuse_write('a sum of a limit');
    end if;
  end $$;
`
