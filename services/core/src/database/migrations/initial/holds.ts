import { rowCheck } from './row-check.ts'
import { signature } from './signature.ts'

/** Holds, which reserve a part of a wallet's balance. `change_holds` writes them (hold-changes.ts). */
export const holds = `
  create table hold (
    workspace_id uuid not null,
    id uuid not null,
    -- Counts the holds of the workspace, and those of the wallet, 1…n.
    number bigint not null,
    wallet_number bigint not null,
    biz_id bounded_text collate "C" not null,
    wallet_id uuid not null,
    currency bounded_text collate "C" not null,
    amount positive_amount not null,
    captured bounded_amount not null default 0,
    remaining bounded_amount not null,
    status hold_status collate "C" not null,
    expires_at bounded_time not null,
    reference bounded_text collate "C",
    remark bounded_text,
    created_at bounded_time not null,
    -- For an expired hold, expires_at.
    updated_at bounded_time not null,
    ${signature},
    primary key (workspace_id, id),
    foreign key (workspace_id, wallet_id, currency) references wallet (workspace_id, id, currency)
  );
  create unique index hold_biz_id on hold (workspace_id, biz_id);
  create unique index hold_number on hold (workspace_id, number);
  create unique index hold_wallet_number on hold (workspace_id, wallet_id, wallet_number);
  create index hold_reference on hold (workspace_id, reference, number) where reference is not null;
  create index hold_open on hold (workspace_id, wallet_id, expires_at) where status = 'OPEN';
  create index hold_due on hold (expires_at) where status = 'OPEN';

  ${rowCheck(
    'hold',
    'insert or update',
    `
      new.captured between 0 and new.amount and new.remaining >= 0 and (new.status = 'OPEN') = (new.remaining > 0)
      and (new.status <> 'OPEN' or new.captured + new.remaining = new.amount) and new.expires_at > new.created_at`,
  )}

  create function refuse_hold_change() returns trigger language plpgsql as $$
  begin
    raise exception 'this update of a hold is refused: its terms are fixed, captures only grow, and an ended hold stays as it is'
      using errcode = 'restrict_violation';
  end $$;
  create trigger hold_update_is_checked before update on hold for each row
    when (old.status <> 'OPEN' or new.revision <> old.revision + 1 or new.captured < old.captured
      or to_jsonb(old) - array['captured', 'remaining', 'status', 'updated_at', 'revision', 'mac']
        is distinct from to_jsonb(new) - array['captured', 'remaining', 'status', 'updated_at', 'revision', 'mac'])
    execute function refuse_hold_change();
  create trigger hold_is_kept before delete on hold for each row execute function refuse_change();
  create trigger hold_is_not_truncated before truncate on hold for each statement execute function refuse_change();
`
