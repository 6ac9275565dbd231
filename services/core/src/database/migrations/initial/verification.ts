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
    uploaded_at bounded_time not null default clock_timestamp(),
    primary key (upload_id, part),
    ${bounded(4_194_304, 'content')}
  );

  -- Where the last sound verification that core scheduled ended, for each workspace; the nil UUID stands for actions on no workspace.
  -- The next one can begin there (see integrity/verify/baseline.ts). The audit has a digest of all rows, so changing or removing rows
  -- only makes the next verification a whole one.
  create table verified_ledger (
    workspace_id uuid primary key,
    -- Of its ledger: the last event, the orders up to it, its time, and the MAC of the last journal entry.
    position bigint not null,
    order_count bigint not null,
    posted_at bounded_time,
    journal_head bytea not null,
    -- The last action in its audit, and its MAC.
    audit_position bigint not null,
    audit_mac bytea not null,
    -- SHA-256 of the ends of its wallets' chains, and of its actions in the audit that are no deposits and withdrawals.
    wallets bytea not null,
    audit bytea not null,
    ${bounded(64, 'journal_head', 'audit_mac', 'wallets', 'audit')}
  );
`
