/**
 * The functions that write ledger and wallet rows, except for postings (see posting.ts). Like `post`, they run with the
 * rights of the owner of the tables; the service role can only read those rows. Core checks the MACs, because the
 * database does not have the key.
 */
export const ledgerRows = `
  -- Whether a row may be written at this time: the present, or the time of the ledger's last change if the clock is behind it.
  -- Nothing is written into the past, so past balances and statements are final. Citus takes only immutable functions in an
  -- update, so the time of the clock is an argument.
  create function is_now(at timestamptz, last_posted_at timestamptz, clock timestamptz) returns boolean language sql
    immutable set search_path = pg_catalog, pg_temp as $$
    select at between greatest(last_posted_at, clock - interval '10 s') and greatest(last_posted_at, clock)
  $$;

  -- Locks ledgers until the transaction ends, in one order everywhere.
  create function lock_ledgers(workspaces uuid[]) returns table (locked {schema}.ledger, version xid) language sql
    security definer set search_path = pg_catalog, pg_temp as $$
    select l, l.xmin from {schema}.ledger l where l.workspace_id = any (workspaces) order by l.workspace_id for no key update
  $$;

  -- Those of these ledgers that nobody has locked at this moment.
  create function lockable_ledgers(workspaces uuid[]) returns setof uuid language sql
    security definer set search_path = pg_catalog, pg_temp as $$
    select l.workspace_id from {schema}.ledger l where l.workspace_id = any (workspaces) for no key update skip locked
  $$;

  create function refuse_write(what text) returns void language plpgsql as $$
  begin
    raise exception '% is refused: it does not continue from the row of its ledger or wallet', what
      using errcode = 'restrict_violation';
  end $$;

  -- The empty ledger of a new workspace.
  create function open_ledger(workspace uuid, at timestamptz, new_mac bytea) returns void language plpgsql
    security definer set search_path = pg_catalog, pg_temp as $$
  begin
    if {schema}.is_now(at, '-infinity', clock_timestamp()) is not true then
      perform {schema}.refuse_write('a new ledger');
    end if;
    insert into {schema}.ledger (workspace_id, last_posted_at, revision, mac) values (workspace, at, 1, new_mac);
  end $$;

  -- A new, empty wallet: a numbered one, which is the next of its ledger and an event (entry), or a hidden one (entry null).
  create function create_wallet(workspace uuid, wallet uuid, wallet_number bigint, wallet_biz_id text, wallet_name text,
    wallet_currency text, at timestamptz, new_mac bytea, new_ledger_mac bytea, entry jsonb) returns void language plpgsql
    security definer set search_path = pg_catalog, pg_temp as $$
  declare
    clock timestamptz := clock_timestamp();
  begin
    update {schema}.ledger l
    set wallet_count = coalesce(wallet_number, l.wallet_count), last_posted_at = at, revision = l.revision + 1,
      mac = new_ledger_mac, position = case when entry is null then l.position else (entry ->> 'position')::bigint end,
      journal_head = case when entry is null then l.journal_head else (entry ->> 'mac')::bytea end
    where l.workspace_id = workspace and l.status in ('OPEN', 'HALTED') and {schema}.is_now(at, l.last_posted_at, clock)
      and (wallet_number is null) = (entry is null)
      and (wallet_number is null
        or wallet_number = l.wallet_count + 1 and (entry ->> 'position')::bigint = l.position + 1);
    if not found then
      perform {schema}.refuse_write('a new wallet');
    end if;
    insert into {schema}.wallet (workspace_id, id, number, kind, biz_id, name, currency, status, created_at, updated_at,
        revision, mac)
      values (workspace, wallet, wallet_number, case when entry is null then 'EXTERNAL' else 'CUSTOMER' end, wallet_biz_id,
        wallet_name, wallet_currency, 'ACTIVE', at, at, 1, new_mac);
    if entry is not null then
      perform {schema}.append_wallet_event(workspace, wallet, at, entry);
    end if;
  end $$;

  -- A wallet that is closed stays closed. The ledger counts the change, so that no core posts from what it remembers.
  create function change_wallet_status(workspace uuid, wallet uuid, new_status text, new_frozen_by text, at timestamptz,
    new_mac bytea, new_ledger_mac bytea, entry jsonb) returns void language plpgsql
    security definer set search_path = pg_catalog, pg_temp as $$
  declare
    clock timestamptz := clock_timestamp();
  begin
    update {schema}.ledger l
    set last_posted_at = at, revision = l.revision + 1, mac = new_ledger_mac, position = (entry ->> 'position')::bigint,
      journal_head = (entry ->> 'mac')::bytea
    where l.workspace_id = workspace and l.status in ('OPEN', 'HALTED') and {schema}.is_now(at, l.last_posted_at, clock)
      and (entry ->> 'position')::bigint = l.position + 1;
    if not found then
      perform {schema}.refuse_write('a change of a wallet');
    end if;
    update {schema}.wallet w
    set status = new_status, frozen_by = new_frozen_by, updated_at = at, revision = w.revision + 1, mac = new_mac
    where w.workspace_id = workspace and w.id = wallet and w.kind = 'CUSTOMER' and w.status <> 'CLOSED'
      and row (w.status, w.frozen_by) is distinct from row (new_status, new_frozen_by);
    if not found then
      perform {schema}.refuse_write('a change of a wallet');
    end if;
    perform {schema}.append_wallet_event(workspace, wallet, at, entry);
  end $$;

  -- An event that has led to the status of the wallet.
  create function append_wallet_event(workspace uuid, wallet uuid, at timestamptz, entry jsonb) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
  declare
    reached text;
    orders bigint;
  begin
    select w.status into reached from {schema}.wallet w where w.workspace_id = workspace and w.id = wallet;
    select l.order_count into orders from {schema}.ledger l where l.workspace_id = workspace;
    if ((entry ->> 'type', reached) in (('wallet.created', 'ACTIVE'), ('wallet.frozen', 'FROZEN'), ('wallet.unfrozen', 'ACTIVE'),
      ('wallet.closed', 'CLOSED')) and orders is not null) is not true
    then
      perform {schema}.refuse_write('an event of a wallet');
    end if;
    insert into {schema}.journal (workspace_id, position, order_count, id, type, wallet_id, status, actor, request_id,
        client_address, created_at, mac)
      values (workspace, (entry ->> 'position')::bigint, orders, (entry ->> 'id')::uuid, entry ->> 'type', wallet, reached,
        entry ->> 'actor', entry ->> 'request_id', entry ->> 'client_address', at, (entry ->> 'mac')::bytea);
  end $$;

  -- A ledger is halted, opened again, or closed. One that is open can also move to another place, and is opened there, or here again.
  -- That of a deleted workspace stays closed; core halts one that somebody else has closed. The lock comes first, so that the next statement sees a deletion that held it.
  create function change_ledger_status(workspace uuid, new_status text, new_reason text, new_mac bytea)
    returns void language plpgsql
    security definer set search_path = pg_catalog, pg_temp as $$
  begin
    perform from {schema}.ledger l where l.workspace_id = workspace for no key update;
    update {schema}.ledger l set status = new_status, halt_reason = new_reason, revision = l.revision + 1, mac = new_mac
    where l.workspace_id = workspace and l.status <> new_status
      and (new_status <> 'MOVING' or l.status = 'OPEN') and (l.status <> 'MOVING' or new_status in ('OPEN', 'HALTED'))
      and (l.status <> 'CLOSED' or (new_status = 'HALTED'
        and exists (select from {schema}.workspace w where w.id = workspace and w.deleted_at is null)));
    if not found then
      perform {schema}.refuse_write('a change of a ledger');
    end if;
  end $$;

  -- Of a halted ledger: a wallet gets what its last flow and its holds say, and nothing else.
  create function repair_wallet(workspace uuid, wallet uuid, new_balance numeric, new_sequence bigint,
    new_order_count bigint, new_head bytea, new_held numeric, new_held_until timestamptz, new_hold_count bigint,
    new_name text, new_biz_id text, new_status text, new_frozen_by text, new_mac bytea) returns void language plpgsql
    security definer set search_path = pg_catalog, pg_temp as $$
  begin
    perform from {schema}.ledger l where l.workspace_id = workspace and l.status = 'HALTED' for no key update;
    if not found
      or row (new_balance, new_sequence, new_order_count, new_head) is distinct from coalesce(
        (select row (f.balance_after::numeric, f.sequence::bigint, f.order_count, f.mac::bytea) from {schema}.flow f
         where f.workspace_id = workspace and f.wallet_id = wallet order by f.sequence desc limit 1),
        row (0::numeric, 0::bigint, 0::bigint, ''::bytea))
      or (select new_hold_count = count(*)
          and new_held = coalesce(sum(h.remaining) filter (where h.status = 'OPEN'), 0)
          and coalesce(new_held_until <= min(h.expires_at) filter (where h.status = 'OPEN'),
            new_held_until is null and new_held = 0)
        from {schema}.hold h where h.workspace_id = workspace and h.wallet_id = wallet) is not true
    then
      perform {schema}.refuse_write('a repair of a wallet');
    end if;
    update {schema}.wallet w set balance = new_balance, sequence = new_sequence, order_count = new_order_count,
      head = new_head, held = new_held, held_until = new_held_until, hold_count = new_hold_count, name = new_name,
      biz_id = new_biz_id, status = new_status, frozen_by = new_frozen_by, revision = w.revision + 1, mac = new_mac
    where w.workspace_id = workspace and w.id = wallet;
  end $$;

  -- A halted ledger gets the counters that its wallets, transfers and holds come to, and the end of its event log.
  create function repair_ledger(workspace uuid, new_wallet_count bigint, new_order_count bigint, new_hold_count bigint,
    new_limit_count bigint, new_position bigint, new_journal_head bytea, at timestamptz, new_mac bytea) returns void language plpgsql
    security definer set search_path = pg_catalog, pg_temp as $$
  declare
    clock timestamptz := clock_timestamp();
  begin
    update {schema}.ledger l set wallet_count = new_wallet_count, order_count = new_order_count,
      hold_count = new_hold_count, limit_count = new_limit_count, position = new_position, journal_head = new_journal_head, last_posted_at = at,
      revision = l.revision + 1, mac = new_mac
    where l.workspace_id = workspace and l.status = 'HALTED' and at <= clock
      -- Later changes must not be dated before rows that exist.
      and at >= greatest('-infinity',
        (select t.created_at from {schema}.transfer t where t.workspace_id = workspace order by t.position desc limit 1),
        (select j.created_at from {schema}.journal j where j.workspace_id = workspace order by j.position desc limit 1))
      and new_wallet_count = (select count(w.number) from {schema}.wallet w where w.workspace_id = workspace)
      and new_order_count = (
        select count(*) from {schema}.transfer t where t.workspace_id = workspace and t.type = 'TRANSFER')
      and new_hold_count = (select count(*) from {schema}.hold h where h.workspace_id = workspace)
      and new_limit_count = (select count(*) from {schema}.spending_limit s
        where s.workspace_id = workspace and num_nonnulls(s.per_transfer, s.per_day) > 0)
      and new_position = (select count(*) from {schema}.transfer t where t.workspace_id = workspace)
        + (select count(*) from {schema}.journal j where j.workspace_id = workspace)
      and new_journal_head = coalesce(
        (select j.mac from {schema}.journal j where j.workspace_id = workspace order by j.position desc limit 1), '');
    if not found then
      perform {schema}.refuse_write('a repair of a ledger');
    end if;
  end $$;
`
