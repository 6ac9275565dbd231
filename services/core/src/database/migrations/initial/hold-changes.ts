/**
 * The only way to write holds. Like `post`, `change_holds` runs with the rights of the owner of the tables, and checks
 * every change against the rows that it locks. If transfers capture these holds, `post` follows in the same transaction.
 */
export const holdChanges = `
  create function change_holds(
    -- Each ledger: its MAC now, and its time, position, journal head, hold count and MAC afterwards.
    ledgers jsonb,
    -- Each wallet whose holds change, or whose time is outdated: its MAC now, and how much is held until when, its hold count
    -- and its MAC afterwards.
    wallets jsonb,
    -- Each hold afterwards, and its MAC now, which a new one does not have.
    holds jsonb,
    -- The events, in the order of their positions.
    events jsonb) returns void language plpgsql
    security definer set search_path = pg_catalog, pg_temp as $$
  declare
    found_count bigint;
    changed_holds bigint;
    changes jsonb;
    entries jsonb;
    clock timestamptz := clock_timestamp();
  begin
    update {schema}.ledger l
    set position = n.position, journal_head = n.journal_head, hold_count = n.hold_count, last_posted_at = n.at,
      revision = l.revision + 1, mac = n.mac
    from jsonb_to_recordset(ledgers) as n (workspace_id uuid, old_mac bytea, at timestamptz, position bigint,
        journal_head bytea, hold_count bigint, mac bytea)
    cross join lateral (select row.ctid from {schema}.ledger row where row.workspace_id = n.workspace_id limit 1) found
    where l.ctid = found.ctid and l.status = 'OPEN' and l.mac = n.old_mac
      and {schema}.is_now(n.at, l.last_posted_at, clock)
      and n.position = l.position + (
        select count(*) from jsonb_to_recordset(events) as e (workspace_id uuid) where e.workspace_id = n.workspace_id)
      and n.hold_count = l.hold_count + (
        select count(*) from jsonb_to_recordset(holds) as h (workspace_id uuid, old_mac bytea)
        where h.workspace_id = n.workspace_id and h.old_mac is null);
    get diagnostics found_count = row_count;
    -- The other conditions are null, and refuse nothing, if one of the arguments is.
    if num_nulls(ledgers, wallets, holds, events) > 0 or found_count <> jsonb_array_length(ledgers) then
      perform {schema}.refuse_write('a change of holds');
    end if;

    -- The sum of each wallet's holds follows from what each of them changes. In one statement, Citus would not take it.
    with updated as (
      update {schema}.hold h
      set captured = n.captured, remaining = n.remaining, status = n.status, updated_at = n.updated_at,
        revision = h.revision + 1, mac = n.mac
      from jsonb_to_recordset(holds) as n (workspace_id uuid, id uuid, captured numeric, remaining numeric, status text,
          updated_at timestamptz, old_mac bytea, mac bytea)
      cross join lateral (select row.ctid from {schema}.hold row
        where row.workspace_id = n.workspace_id and row.id between n.id and n.id order by row.id limit 1) found
      where h.ctid = found.ctid and h.mac = n.old_mac
      returning h.workspace_id, h.wallet_id, new.remaining - old.remaining as change)
    select coalesce(jsonb_agg(jsonb_build_object('workspace_id', u.workspace_id, 'wallet_id', u.wallet_id, 'change', u.change,
      'added', 0)), '[]') into changes from updated u;

    insert into {schema}.hold
      select n.* from jsonb_array_elements(holds) as given (hold),
        jsonb_populate_record(null::{schema}.hold, given.hold || '{"revision": 1}') n
      where given.hold ->> 'old_mac' is null;
    changes := changes || (
      select coalesce(jsonb_agg(jsonb_build_object('workspace_id', h.workspace_id, 'wallet_id', h.wallet_id,
        'change', h.remaining, 'added', 1)), '[]')
      from jsonb_to_recordset(holds) as h (workspace_id uuid, wallet_id uuid, remaining numeric, old_mac bytea)
      where h.old_mac is null);

    with held as (
      update {schema}.wallet w
      set held = n.held, held_until = n.held_until, hold_count = n.hold_count, revision = w.revision + 1, mac = n.mac
      from jsonb_to_recordset(wallets) as n (workspace_id uuid, id uuid, old_mac bytea, held numeric,
          held_until timestamptz, hold_count bigint, mac bytea)
        left join (
          select h.workspace_id, h.wallet_id, sum(h.change) as change, sum(h.added) as added, count(*) as holds
          from jsonb_to_recordset(changes) as h (workspace_id uuid, wallet_id uuid, change numeric, added bigint)
          group by h.workspace_id, h.wallet_id) c on c.workspace_id = n.workspace_id and c.wallet_id = n.id
        cross join lateral (select row.ctid from {schema}.wallet row
          where row.workspace_id = n.workspace_id and row.id between n.id and n.id order by row.id limit 1) found
      where w.ctid = found.ctid and w.mac = n.old_mac
        and w.held + coalesce(c.change, 0) = n.held and w.hold_count + coalesce(c.added, 0) = n.hold_count
      returning coalesce(c.holds, 0) as holds)
    select count(*), coalesce(sum(h.holds), 0) into found_count, changed_holds from held h;
    if found_count <> jsonb_array_length(wallets) or changed_holds is distinct from jsonb_array_length(holds) or exists (
      -- Without the row of its ledger, a change would not be locked, and could give an event the position of a transfer.
      select from jsonb_to_recordset(wallets || events) as n (workspace_id uuid)
      where n.workspace_id not in (select l.workspace_id from jsonb_to_recordset(ledgers) as l (workspace_id uuid))
    ) or exists (
      select from jsonb_to_recordset(wallets) as n (workspace_id uuid, id uuid, held_until timestamptz), lateral (
        select from {schema}.hold h
        where h.workspace_id = n.workspace_id and h.wallet_id = n.id and h.status = 'OPEN' and h.expires_at < n.held_until
        order by h.expires_at limit 1) earlier
    ) or exists (
      -- Lists look up holds by time and number, which never decrease. A forged one out of order would hide genuine holds.
      select from jsonb_to_recordset(holds) as h (workspace_id uuid, wallet_id uuid, number bigint, wallet_number bigint,
          created_at timestamptz, old_mac bytea)
        left join jsonb_to_recordset(ledgers) as l (workspace_id uuid, at timestamptz, hold_count bigint)
          on l.workspace_id = h.workspace_id
        left join jsonb_to_recordset(wallets) as w (workspace_id uuid, id uuid, hold_count bigint)
          on w.workspace_id = h.workspace_id and w.id = h.wallet_id
      where h.old_mac is null and (h.created_at = l.at and h.number between 1 and l.hold_count
        and h.wallet_number between 1 and w.hold_count) is not true)
    then
      perform {schema}.refuse_write('a change of holds');
    end if;

    select coalesce(jsonb_agg(e.event || jsonb_build_object('order_count', l.order_count, 'wallet_id', h.wallet_id,
      'created_at', l.last_posted_at)), '[]') into entries
    from (
        select given.event, n.workspace_id, n.position, n.hold_id, count(*) over (partition by n.workspace_id)
          - row_number() over (partition by n.workspace_id order by n.position) as later
        from jsonb_array_elements(events) as given (event), jsonb_populate_record(null::{schema}.journal, given.event) n
        where n.type like 'hold.%') e
      cross join lateral (
        select * from {schema}.ledger row where row.workspace_id = e.workspace_id and row.position = e.position + e.later
        limit 1) l
      cross join lateral (
        select * from {schema}.hold row
        where row.workspace_id = e.workspace_id and row.id between e.hold_id and e.hold_id order by row.id limit 1) h;
    insert into {schema}.journal
      select n.* from jsonb_array_elements(entries) as given (entry), jsonb_populate_record(null::{schema}.journal, given.entry) n;
    get diagnostics found_count = row_count;
    if found_count <> jsonb_array_length(events) then
      perform {schema}.refuse_write('an event of a hold');
    end if;
  end $$;
`
