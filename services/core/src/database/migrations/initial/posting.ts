/**
 * The only way to write flows. `post` runs with the rights of whoever owns the tables; the service's role may only read
 * them. Core decides; `post` checks every decision against the rows that it locks.
 *
 * Transfers name their ledger, source and target by their places, from 1, in the arrays of ledgers and wallets.
 */
export const posting = `
  -- A ledger: its version (xmin) and MAC now, the time, and its counters and MAC afterwards. The version is null for a row that this
  -- transaction has written.
  create type posted_ledger as (workspace_id uuid, version xid, old_mac bytea, posted_at timestamptz, order_count bigint,
    position bigint, mac bytea);
  -- A wallet: its version and MAC now, and its row afterwards.
  create type posted_wallet as (ledger integer, id uuid, version xid, old_mac bytea, balance numeric, sequence bigint,
    order_count bigint, head bytea, mac bytea);
  -- A transfer, with its flows on source and target.
  create type posted_transfer as (ledger integer, id uuid, position bigint, order_count bigint, type text, biz_id text,
    reference text, amount numeric, currency text, remark text, hold_id uuid, hold_remaining numeric, reverses_id uuid,
    reversed_total numeric, batch_id uuid, actor text, request_id text, client_address text,
    source integer, source_sequence bigint, source_order_count bigint, source_balance numeric, source_mac bytea,
    target integer, target_sequence bigint, target_order_count bigint, target_balance numeric, target_mac bytea);

  create function post(
    ledgers {schema}.posted_ledger[],
    wallets {schema}.posted_wallet[],
    -- In the order of posting.
    transfers {schema}.posted_transfer[],
    -- For ledgers that are not locked: the latest time to post. When another transaction has written to all of them, \`post\` writes
    -- nothing and returns nulls. For locked ledgers null.
    not_after timestamptz,
    -- The application_name of the session during the transaction; null: as it is.
    name text,
    -- The time afterwards, and the version of the rows that were written.
    out now timestamptz, out version xid) language plpgsql
    security definer set search_path = pg_catalog, pg_temp as $$
  declare
    found_count integer;
    -- The rows as they were, and then as the transfers so far leave them.
    ledger_ids uuid[];
    times timestamptz[];
    ledger_orders bigint[];
    at_position bigint[];
    wallet_ledgers integer[];
    wallet_ids uuid[];
    kinds text[];
    currencies text[];
    at_balance numeric[];
    at_sequence bigint[];
    at_order bigint[];
    at_mac bytea[];
    -- The rows as they are given.
    order_counts bigint[];
    ledger_positions bigint[];
    balances numeric[];
    sequences bigint[];
    wallet_orders bigint[];
    heads bytea[];
    transfer {schema}.posted_transfer;
    source integer;
    target integer;
    is_order boolean;
    clock timestamptz := clock_timestamp();
    own_version xid := pg_current_xact_id_if_assigned()::xid;
  begin
    if name is not null then
      name := set_config('application_name', name, true);
    end if;
    -- Subscripts and unnest read the same elements only of arrays with one dimension that begin at 1.
    if (array_dims(ledgers) = '[1:' || cardinality(ledgers) || ']' and array_dims(wallets) = '[1:' || cardinality(wallets) || ']'
      and array_dims(transfers) = '[1:' || cardinality(transfers) || ']') is not true
    then
      raise exception 'post rejects these transfers: its arrays do not have their elements in one dimension, counted from 1'
        using errcode = 'restrict_violation';
    end if;

    -- Locks ledgers in one order everywhere.
    with updated as (
      update {schema}.ledger l
      set order_count = n.order_count, position = n.position, last_posted_at = n.posted_at, revision = l.revision + 1,
        mac = n.mac
      from (select * from unnest(ledgers) with ordinality order by workspace_id) n
      cross join lateral (select row.ctid from {schema}.ledger row where row.workspace_id = n.workspace_id limit 1) found
      where l.ctid = found.ctid and l.status = 'OPEN' and l.mac = n.old_mac
        and l.xmin = coalesce(n.version, own_version)
        -- As in is_now, which PostgreSQL cannot inline.
        and n.posted_at between greatest(l.last_posted_at, clock - interval '10 s')
          and greatest(l.last_posted_at, clock)
      returning n.ordinality as place, l.workspace_id, l.last_posted_at, l.order_count, l.position, old.order_count as old_orders,
        old.position as old_position)
    select count(*), array_agg(workspace_id order by place), array_agg(last_posted_at order by place),
      array_agg(order_count order by place), array_agg(position order by place), array_agg(old_orders order by place),
      array_agg(old_position order by place)
    into found_count, ledger_ids, times, order_counts, ledger_positions, ledger_orders, at_position from updated;
    if found_count = 0 and not_after is not null then
      return;
    end if;
    -- The update may have waited for a lock.
    if found_count is distinct from cardinality(ledgers) or clock_timestamp() > not_after then
      raise exception 'post rejects these transfers: a ledger has changed since it was read, or it is too late'
        using errcode = 'serialization_failure';
    end if;

    with updated as (
      update {schema}.wallet w
      set balance = n.balance, sequence = n.sequence, order_count = n.order_count, head = n.head,
        updated_at = times[n.ledger], revision = w.revision + 1, mac = n.mac
      from unnest(wallets) with ordinality n
      cross join lateral (select row.ctid from {schema}.wallet row
        where row.workspace_id = ledger_ids[n.ledger] and row.id between n.id and n.id order by row.id limit 1) found
      where w.ctid = found.ctid and w.mac = n.old_mac and w.status = 'ACTIVE'
        and w.xmin = coalesce(n.version, own_version)
      returning n.ordinality as place, n.ledger, w.id, w.kind, w.currency, w.balance, w.sequence, w.order_count, w.head,
        old.balance as old_balance, old.sequence as old_sequence, old.order_count as old_orders, old.head as old_head)
    select count(*), array_agg(ledger order by place), array_agg(id order by place), array_agg(kind order by place),
      array_agg(currency order by place), array_agg(balance order by place), array_agg(sequence order by place),
      array_agg(order_count order by place), array_agg(head order by place), array_agg(old_balance order by place),
      array_agg(old_sequence order by place), array_agg(old_orders order by place), array_agg(old_head order by place)
    into found_count, wallet_ledgers, wallet_ids, kinds, currencies, balances, sequences, wallet_orders, heads, at_balance,
      at_sequence, at_order, at_mac from updated;
    if found_count is distinct from cardinality(wallets) then
      raise exception 'post rejects these transfers: a wallet has changed since it was read' using errcode = 'restrict_violation';
    end if;

    foreach transfer in array transfers loop
      source := transfer.source;
      target := transfer.target;
      is_order := transfer.type = 'TRANSFER';
      if (transfer.position = at_position[transfer.ledger] + 1
        and transfer.order_count = ledger_orders[transfer.ledger] + is_order::integer
        and wallet_ledgers[source] = transfer.ledger and wallet_ledgers[target] = transfer.ledger
        and currencies[source] = transfer.currency and currencies[target] = transfer.currency
        and kinds[source] = case transfer.type when 'DEPOSIT' then 'EXTERNAL' else 'CUSTOMER' end
        and kinds[target] = case transfer.type when 'WITHDRAWAL' then 'EXTERNAL' else 'CUSTOMER' end
        and transfer.source_balance = at_balance[source] - transfer.amount
        and transfer.target_balance = at_balance[target] + transfer.amount
        and (transfer.source_balance >= 0 or transfer.type = 'DEPOSIT')
        and transfer.source_sequence = at_sequence[source] + 1 and transfer.target_sequence = at_sequence[target] + 1
        and transfer.source_order_count = at_order[source] + is_order::integer
        and transfer.target_order_count = at_order[target] + is_order::integer) is not true
      then
        raise exception 'post rejects transfer %: it does not continue from its wallets and its ledger', transfer.id
          using errcode = 'restrict_violation';
      end if;
      at_balance[source] := transfer.source_balance;
      at_balance[target] := transfer.target_balance;
      at_sequence[source] := transfer.source_sequence;
      at_sequence[target] := transfer.target_sequence;
      at_mac[source] := transfer.source_mac;
      at_mac[target] := transfer.target_mac;
      at_order[source] := transfer.source_order_count;
      at_order[target] := transfer.target_order_count;
      at_position[transfer.ledger] := transfer.position;
      ledger_orders[transfer.ledger] := transfer.order_count;
    end loop;
    if (at_balance = balances and at_sequence = sequences and at_order = wallet_orders and at_mac = heads
      and ledger_orders = order_counts and at_position = ledger_positions) is not true
    then
      raise exception 'post rejects these transfers: the rows of wallets and ledgers do not follow from them'
        using errcode = 'restrict_violation';
    end if;

    -- Each index covers the sequences of one side. A wallet that was set back could take one that its other side has. A
    -- batch with a time limit comes from memory: its wallets are as core left them.
    -- The limits make the planner look each sequence up. The order makes it use the index of sequences: if it expects one
    -- row, it may look up an equal sequence in any index that begins with the workspace.
    if not_after is null and exists (
      select from unnest(transfers) p,
        lateral (
          (select from {schema}.transfer t where t.workspace_id = ledger_ids[p.ledger]
            and t.target_wallet_id = wallet_ids[p.source] and t.target_sequence >= p.source_sequence
            order by t.target_sequence limit 1)
          union all
          (select from {schema}.transfer t where t.workspace_id = ledger_ids[p.ledger]
            and t.source_wallet_id = wallet_ids[p.target] and t.source_sequence >= p.target_sequence
            order by t.source_sequence limit 1)) taken)
    then
      raise exception 'post rejects these transfers: a wallet has a flow with one of their sequences or a later one'
        using errcode = 'unique_violation', constraint = 'entry_sequence';
    end if;

    insert into {schema}.transfer (workspace_id, id, position, order_count, type, biz_id, reference, amount, currency, remark,
      hold_id, hold_remaining, reverses_id, reversed_total, batch_id, actor, request_id, client_address, created_at,
      source_wallet_id, source_sequence, source_order_count, source_balance, source_mac, target_wallet_id, target_sequence,
      target_order_count, target_balance, target_mac)
    select ledger_ids[p.ledger], p.id, p.position, p.order_count, p.type, p.biz_id, p.reference, p.amount, p.currency, p.remark,
      p.hold_id, p.hold_remaining, p.reverses_id, p.reversed_total, p.batch_id, p.actor, p.request_id, p.client_address,
      times[p.ledger], wallet_ids[p.source], p.source_sequence, p.source_order_count, p.source_balance, p.source_mac,
      wallet_ids[p.target], p.target_sequence, p.target_order_count, p.target_balance, p.target_mac
    from unnest(transfers) p;
    now := clock_timestamp();
    version := pg_current_xact_id()::xid;
  end $$;

  -- One transfer between two wallets, posted from memory: the same checks and the same rows as \`post\` with \`not_after\`, in about
  -- half of its CPU time. It updates rows by their keys and inserts one, where \`post\` joins arrays.
  create function post_transfer(
    -- The ledger: its version (xmin) and MAC now, the time, and its counters and MAC afterwards.
    workspace uuid, ledger_version xid, old_ledger_mac bytea, posted_at timestamptz, ledger_orders bigint,
    ledger_position bigint, ledger_mac bytea,
    -- Each wallet: its version and MAC now, and its row afterwards, which is also what its flow says.
    source uuid, source_version xid, old_source_mac bytea, source_balance numeric, source_sequence bigint,
    source_orders bigint, source_head bytea, source_mac bytea,
    target uuid, target_version xid, old_target_mac bytea, target_balance numeric, target_sequence bigint,
    target_orders bigint, target_head bytea, target_mac bytea,
    id uuid, biz_id text, reference text, amount numeric, currency text, remark text, actor text, request_id text,
    client_address text,
    -- As in \`post\`; and the application_name of the session during the transaction.
    not_after timestamptz, name text,
    out now timestamptz, out version xid) language plpgsql
    security definer set search_path = pg_catalog, pg_temp as $$
  #variable_conflict use_variable
  declare
    clock timestamptz := clock_timestamp();
  begin
    perform set_config('application_name', name, true);
    update {schema}.ledger l
    set order_count = ledger_orders, position = ledger_position, last_posted_at = posted_at, revision = l.revision + 1,
      mac = ledger_mac
    where l.workspace_id = workspace and l.status = 'OPEN' and l.xmin = ledger_version and l.mac = old_ledger_mac
      and l.order_count + 1 = ledger_orders and l.position + 1 = ledger_position
      -- As in is_now, which PostgreSQL cannot inline.
      and posted_at between greatest(l.last_posted_at, clock - interval '10 s') and greatest(l.last_posted_at, clock);
    if not found then
      return;
    end if;
    -- The update may have waited for a lock.
    if (clock_timestamp() <= not_after) is not true then
      raise exception 'post_transfer rejects this transfer: it is too late' using errcode = 'serialization_failure';
    end if;

    update {schema}.wallet w
    set balance = source_balance, sequence = source_sequence, order_count = source_orders, head = source_head,
      updated_at = posted_at, revision = w.revision + 1, mac = source_mac
    where w.workspace_id = workspace and w.id = source and w.status = 'ACTIVE' and w.kind = 'CUSTOMER'
      and w.currency = post_transfer.currency and w.xmin = source_version and w.mac = old_source_mac
      and w.balance - amount = source_balance and source_balance >= 0 and w.sequence + 1 = source_sequence
      and w.order_count + 1 = source_orders;
    if not found then
      perform {schema}.refuse_write('a transfer');
    end if;
    update {schema}.wallet w
    set balance = target_balance, sequence = target_sequence, order_count = target_orders, head = target_head,
      updated_at = posted_at, revision = w.revision + 1, mac = target_mac
    where w.workspace_id = workspace and w.id = target and w.status = 'ACTIVE' and w.kind = 'CUSTOMER'
      and w.currency = post_transfer.currency and w.xmin = target_version and w.mac = old_target_mac
      and w.balance + amount = target_balance and w.sequence + 1 = target_sequence
      and w.order_count + 1 = target_orders;
    if not found then
      perform {schema}.refuse_write('a transfer');
    end if;

    insert into {schema}.transfer (workspace_id, id, position, order_count, type, biz_id, reference, amount, currency, remark,
      actor, request_id, client_address, created_at, source_wallet_id, source_sequence, source_order_count, source_balance,
      source_mac, target_wallet_id, target_sequence, target_order_count, target_balance, target_mac)
    values (workspace, post_transfer.id, ledger_position, ledger_orders, 'TRANSFER', post_transfer.biz_id,
      post_transfer.reference, post_transfer.amount, post_transfer.currency, post_transfer.remark, post_transfer.actor,
      post_transfer.request_id, post_transfer.client_address, posted_at, source, source_sequence, source_orders,
      source_balance, source_head, target, target_sequence, target_orders, target_balance, target_head);
    now := clock_timestamp();
    version := pg_current_xact_id()::xid;
  end $$;
`
