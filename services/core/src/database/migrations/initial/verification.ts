import { bounded } from './bounded.ts'

/** Tables for the verification of the ledger. */
export const verification = `
  -- One row: the fingerprint of the chain key (see ledger/chain/chain-key.ts), which does not reveal the key.
  create table chain_key (
    singleton boolean primary key default true check (singleton),
    fingerprint bytea not null check (octet_length(fingerprint) <= 64)
  );

  -- Parts of an uploaded checkpoint, kept while the ledger is verified against it. Each part is signed under the chain
  -- key, which is not in the database, so changing or removing a part only makes the verification fail.
  create table checkpoint_part (
    upload_id uuid not null,
    part integer not null,
    content text not null,
    uploaded_at timestamptz(3) not null default clock_timestamp(),
    primary key (upload_id, part),
    ${bounded(4_194_304, 'content')}
  );
`
