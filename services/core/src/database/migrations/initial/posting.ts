/**
 * The only way to write flows. `post` runs with the rights of whoever owns the tables; the service's role may only read
 * them. Core decides; `post` checks every decision against the rows that it locks.
 *
 * Transfers name their ledger, source and target by their places, from 1, in the arrays of ledgers and wallets.
 */
export const posting = `
  create function post(
    -- Each ledger: its version (xmin) and MAC now, the time, and its counters and MAC afterwards. The version is null for a
    -- row that this transaction has written.
    ledger_ids uuid[], ledger_versions xid[], old_ledger_macs bytea[], posted_at timestamptz[], order_counts bigint[],
    ledger_positions bigint[], ledger_macs bytea[],
    -- Each wallet: its version and MAC now, and its row afterwards.
    wallet_ledgers integer[], wallet_ids uuid[], wallet_versions xid[], old_wallet_macs bytea[], balances numeric[],
    sequences bigint[], wallet_orders bigint[], heads bytea[], wallet_macs bytea[],
    -- Each transfer, in the order of posting, with its flows on source and target.
    ledgers integer[], ids uuid[], positions bigint[], transfer_order_counts bigint[], types text[], biz_ids text[], refs text[],
    amounts numeric[], currencies text[], sources integer[], targets integer[], source_sequences bigint[],
    target_sequences bigint[], remarks text[], actors text[], request_ids text[], client_addresses text[],
    source_balances numeric[], target_balances numeric[], source_order_counts bigint[], target_order_counts bigint[],
    source_macs bytea[], target_macs bytea[], holds uuid[], hold_remainders numeric[], reversed_ids uuid[],
    reversed_totals numeric[], batches uuid[],
    -- For ledgers that are not locked: the latest time to post. After it, and when another transaction has written to one of
    -- them, \`post\` writes nothing and returns nulls. For locked ledgers null: then \`post\` fails instead.
    not_after timestamptz,
    -- The time afterwards, and the version of the rows that were written.
    out now timestamptz, out version xid) language plpgsql
    security definer set search_path = pg_catalog, pg_temp as $$
  declare
    found_count integer;
    -- The rows as the transfers so far leave them.
    ledger_orders bigint[];
    at_position bigint[];
    kinds text[];
    wallet_currencies text[];
    at_balance numeric[];
    at_sequence bigint[];
    at_order bigint[];
    at_mac bytea[];
    source integer;
    target integer;
    is_order boolean;
    clock timestamptz := clock_timestamp();
    own_version xid := pg_current_xact_id_if_assigned()::xid;
  begin
    -- Subscripts and unnest read the same elements only of arrays with one dimension that begin at 1.
    if ('[1:' || cardinality(ledger_ids) || ']' = all (array[array_dims(ledger_ids), array_dims(ledger_versions),
        array_dims(old_ledger_macs), array_dims(posted_at), array_dims(order_counts),
        array_dims(ledger_positions), array_dims(ledger_macs)])
      and '[1:' || cardinality(wallet_ids) || ']' = all (array[array_dims(wallet_ledgers), array_dims(wallet_ids),
        array_dims(wallet_versions), array_dims(old_wallet_macs), array_dims(balances), array_dims(sequences),
        array_dims(wallet_orders), array_dims(heads), array_dims(wallet_macs)])
      and '[1:' || cardinality(ids) || ']' = all (array[array_dims(ledgers), array_dims(ids), array_dims(positions),
        array_dims(transfer_order_counts), array_dims(types), array_dims(biz_ids), array_dims(refs), array_dims(amounts),
        array_dims(currencies), array_dims(sources), array_dims(targets), array_dims(source_sequences), array_dims(target_sequences), array_dims(remarks),
        array_dims(actors), array_dims(request_ids), array_dims(client_addresses), array_dims(source_balances),
        array_dims(target_balances), array_dims(source_order_counts), array_dims(target_order_counts),
        array_dims(source_macs), array_dims(target_macs), array_dims(holds), array_dims(hold_remainders),
        array_dims(reversed_ids), array_dims(reversed_totals), array_dims(batches)])) is not true
    then
      raise exception 'post rejects these transfers: its arrays do not have one element each, counted from 1'
        using errcode = 'restrict_violation';
    end if;

    -- In one order everywhere.
    select count(distinct workspace_id), array_agg(l.order_count order by n.place), array_agg(l.position order by n.place)
    into found_count, ledger_orders, at_position
    from (select l.workspace_id, l.status, l.xmin, l.mac, l.last_posted_at, l.order_count, l.position from {schema}.ledger l
        where l.workspace_id = any (ledger_ids) order by l.workspace_id for no key update) l
      join unnest(ledger_ids, ledger_versions, old_ledger_macs, posted_at) with ordinality
        as n (workspace_id, version, mac, posted_at, place) using (workspace_id)
    where l.status = 'OPEN' and l.xmin = coalesce(n.version, own_version) and l.mac = n.mac
      and {schema}.is_now(n.posted_at, l.last_posted_at, clock);
    if found_count is distinct from cardinality(ledger_ids) or clock_timestamp() > not_after then
      if not_after is not null then
        return;
      end if;
      raise exception 'post rejects these transfers: a ledger has changed since it was read' using errcode = 'serialization_failure';
    end if;

    with updated as (
      update {schema}.wallet w
      set balance = n.balance, sequence = n.sequence, order_count = n.order_count, head = n.head,
        updated_at = posted_at[n.ledger], revision = w.revision + 1, mac = n.mac
      from unnest(wallet_ledgers, wallet_ids, wallet_versions, old_wallet_macs, balances, sequences, wallet_orders, heads,
          wallet_macs) with ordinality
        as n (ledger, id, version, old_mac, balance, sequence, order_count, head, mac, place)
      cross join lateral (select row.ctid from {schema}.wallet row
        where row.workspace_id = ledger_ids[n.ledger] and row.id between n.id and n.id order by row.id limit 1) found
      where w.ctid = found.ctid and w.mac = n.old_mac and w.status = 'ACTIVE'
        and w.xmin = coalesce(n.version, own_version)
      returning n.place, w.kind, w.currency, old.balance, old.sequence, old.order_count, old.head)
    select count(*), array_agg(kind order by place), array_agg(currency order by place), array_agg(balance order by place),
      array_agg(sequence order by place), array_agg(order_count order by place), array_agg(head order by place)
    into found_count, kinds, wallet_currencies, at_balance, at_sequence, at_order, at_mac from updated;
    if found_count is distinct from cardinality(wallet_ids) then
      raise exception 'post rejects these transfers: a wallet has changed since it was read' using errcode = 'restrict_violation';
    end if;

    for at in 1 .. cardinality(ids) loop
      source := sources[at];
      target := targets[at];
      is_order := types[at] = 'TRANSFER';
      if (positions[at] = at_position[ledgers[at]] + 1 and transfer_order_counts[at] = ledger_orders[ledgers[at]] + is_order::integer
        and wallet_ledgers[source] = ledgers[at] and wallet_ledgers[target] = ledgers[at]
        and wallet_currencies[source] = currencies[at] and wallet_currencies[target] = currencies[at]
        and kinds[source] = case types[at] when 'DEPOSIT' then 'EXTERNAL' else 'CUSTOMER' end
        and kinds[target] = case types[at] when 'WITHDRAWAL' then 'EXTERNAL' else 'CUSTOMER' end
        and source_balances[at] = at_balance[source] - amounts[at]
        and target_balances[at] = at_balance[target] + amounts[at]
        and (source_balances[at] >= 0 or types[at] = 'DEPOSIT')
        and source_sequences[at] = at_sequence[source] + 1 and target_sequences[at] = at_sequence[target] + 1
        and source_order_counts[at] = at_order[source] + is_order::integer
        and target_order_counts[at] = at_order[target] + is_order::integer) is not true
      then
        raise exception 'post rejects transfer %: it does not continue from its wallets and its ledger', ids[at]
          using errcode = 'restrict_violation';
      end if;
      at_balance[source] := source_balances[at];
      at_balance[target] := target_balances[at];
      at_sequence[source] := source_sequences[at];
      at_sequence[target] := target_sequences[at];
      at_mac[source] := source_macs[at];
      at_mac[target] := target_macs[at];
      at_order[source] := source_order_counts[at];
      at_order[target] := target_order_counts[at];
      at_position[ledgers[at]] := positions[at];
      ledger_orders[ledgers[at]] := transfer_order_counts[at];
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
      select from unnest(ledgers, sources, source_sequences, targets, target_sequences)
          as p (ledger, source, source_sequence, target, target_sequence),
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

    update {schema}.ledger l
    set order_count = n.order_count, position = n.position, last_posted_at = n.posted_at, revision = l.revision + 1,
      mac = n.mac
    from unnest(ledger_ids, posted_at, order_counts, ledger_positions, ledger_macs)
      as n (workspace_id, posted_at, order_count, position, mac)
    cross join lateral (select row.ctid from {schema}.ledger row where row.workspace_id = n.workspace_id limit 1) found
    where l.ctid = found.ctid;

    insert into {schema}.transfer (workspace_id, id, position, order_count, type, biz_id, reference, amount, currency, remark,
      hold_id, hold_remaining, reverses_id, reversed_total, batch_id, actor, request_id, client_address, created_at,
      source_wallet_id, source_sequence, source_order_count, source_balance, source_mac, target_wallet_id, target_sequence,
      target_order_count, target_balance, target_mac)
    select ledger_ids[ledger], id, position, order_count, type, biz_id, reference, amount, currency, remark, hold, hold_remaining,
      reversed_id, reversed_total, batch, actor, request_id, client_address, posted_at[ledger], wallet_ids[p.source],
      source_sequence, source_order_count, source_balance, source_mac, wallet_ids[p.target], target_sequence,
      target_order_count, target_balance, target_mac
    from unnest(ledgers, ids, positions, transfer_order_counts, types, biz_ids, refs, amounts, currencies, sources, targets,
        source_sequences, target_sequences, remarks, actors, request_ids, client_addresses, source_balances,
        target_balances, source_order_counts, target_order_counts, source_macs, target_macs, holds, hold_remainders,
        reversed_ids, reversed_totals, batches)
      as p (ledger, id, position, order_count, type, biz_id, reference, amount, currency, source, target, source_sequence,
        target_sequence, remark, actor, request_id, client_address, source_balance, target_balance, source_order_count,
        target_order_count, source_mac, target_mac, hold, hold_remaining, reversed_id, reversed_total, batch);
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
