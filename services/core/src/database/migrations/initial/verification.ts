/** What verifying the ledger needs. */
export const verification = `
  -- One row: tells the key of the chain (see ledger/chain/chain-key.ts) from any other, and not what it is.
  create table chain_key (
    the_only_row boolean primary key default true check (the_only_row),
    fingerprint bytea not null
  );

  -- Parts of a checkpoint that somebody verifies the ledger against, for as long as that takes. Each is signed under the
  -- chain key, which is not here: whoever changes or removes one makes the verification fail, and nothing else.
  create table checkpoint_part (
    upload_id uuid not null,
    part integer not null,
    content text not null,
    uploaded_at timestamptz(3) not null default clock_timestamp(),
    primary key (upload_id, part)
  );
`
