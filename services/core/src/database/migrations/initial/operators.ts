import { signature } from './signature.ts'
import { shownTimes } from './times.ts'

/** Operators: people with a token of their own. */
export const operators = `
  create table operator (
    -- A disabled operator keeps the row, so that nobody else gets the name by which the audit knows them.
    name text collate "C" primary key check (octet_length(name) <= 64),
    role text not null check (role in ('admin', 'viewer')),
    status text not null check (status in ('ACTIVE', 'DISABLED')),
    -- SHA-256. Tokens are random, so nobody can find one that has a given hash.
    token_hash bytea not null check (octet_length(token_hash) = 32),
    token_version integer not null check (token_version > 0),
    expires_at timestamptz(3),
    created_at timestamptz(3) not null,
    updated_at timestamptz(3) not null,
    ${signature},
    ${shownTimes('expires_at', 'created_at', 'updated_at')}
  );
  create unique index operator_token on operator (token_hash);

  create trigger operator_update_is_checked before update on operator for each row
    when (old.name <> new.name or new.revision <> old.revision + 1 or new.token_version < old.token_version)
    execute function refuse_row_change();
  create trigger operator_begins_with_revision_1 before insert on operator for each row
    when (new.revision <> 1) execute function refuse_row_change();
`
