/**
 * The events of a workspace that are not transfers. Transfers and these rows share one sequence of positions, 1…n without
 * gaps, which is the workspace's event log.
 */
export const journal = `
  create table journal (
    workspace_id uuid not null references ledger,
    position positive_bigint not null,
    -- How many of the workspace's orders have lower positions.
    order_count bigint not null,
    id uuid not null,
    type journal_type collate "C" not null,
    wallet_id uuid not null,
    -- The hold as the event leaves it.
    hold_id uuid,
    captured bounded_amount,
    remaining bounded_amount,
    -- The status of the hold or the wallet afterwards.
    status bounded_text collate "C" not null,
    actor bounded_text not null,
    request_id bounded_text not null,
    client_address bounded_text,
    created_at bounded_time not null,
    -- Covers the row, and the MAC of the row before it in the workspace.
    mac bounded_bytes not null,
    primary key (workspace_id, position),
    check (num_nonnulls(hold_id, captured, remaining) = case when type like 'hold.%' then 3 else 0 end)
  );
  create index journal_order_count on journal (workspace_id, order_count, position);
  create index journal_hold on journal (workspace_id, hold_id, position) where hold_id is not null;

  -- For searches of operators over all workspaces, like transfer_origin.
  create index journal_origin on journal using brin
    (id uuid_bloom_ops (n_distinct_per_range = 1500), request_id text_bloom_ops (n_distinct_per_range = 1500))
    with (pages_per_range = 32, autosummarize = on);

  create trigger journal_is_immutable before update or delete on journal for each row execute function refuse_change();
  create trigger journal_is_kept before truncate on journal for each statement execute function refuse_change();
`
