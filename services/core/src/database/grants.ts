/**
 * What the service's role may do, right by right. Applied by the migration step every time, so that this list is the
 * truth. docs/threat-model.md says what remains to somebody who holds the role: rows that it writes without the chain
 * key are refused by core and named by `ledger verify`.
 */
export function grants(role: string): string[] {
  return [
    `revoke all on all tables in schema public from ${role}`,
    `revoke all on all functions in schema public from public`,
    `revoke create on schema public from public`,
    `grant usage on schema public to ${role}`,
    `grant select on all tables in schema public to ${role}`,

    // New workspaces, members and keys. Each row has a MAC, and none can be deleted and inserted again.
    `grant insert on workspace, member, api_key to ${role}`,
    // Deletion of a workspace. There is no procedure that changes its name.
    `grant update (updated_at, deleted_at, revision, mac) on workspace to ${role}`,
    // A member leaves, and comes back.
    `grant update (created_at, removed_at, revision, mac) on member to ${role}`,
    // The life of a key. Owner, workspace and name stay.
    `grant update (status, scopes, ip_allowlist, secret, secret_version, previous_secret, previous_secret_until,
       expires_at, deleted_at, last_used_at, updated_at, access_revision, revision, mac) on api_key to ${role}`,
    // One more, and nothing else: a trigger counts, and names each number.
    `grant update (revision) on access_revision to ${role}`,

    // Ledgers, wallets, transfers and entries: written by functions that check every change, and by nothing else.
    `grant execute on function lock_ledgers, lockable_ledgers, open_ledger, create_wallet, change_wallet_status,
       change_ledger_status, repair_wallet, repair_ledger, post to ${role}`,

    // The audit is appended to: a trigger sees to positions and times. Its number is PostgreSQL's.
    `grant insert (at, actor, action, workspace_id, target, before, after, position, mac) on audit to ${role}`,
    `grant execute on function lock_audit to ${role}`,

    // The first core that meets a new database leaves the fingerprint of its chain key; there is room for one.
    `grant insert on chain_key to ${role}`,

    // Checkpoints that are compared: they come in parts, and are gone afterwards.
    `grant insert (upload_id, part, content), delete on checkpoint_part to ${role}`,

    // Limits that hold on every connection, through a connection pooler too.
    `alter role ${role} set lock_timeout = '2s'`,
    `alter role ${role} set statement_timeout = '10s'`,
    // Nobody waits within a transaction: a core that does is frozen, or out of reach, and holds its workspaces' locks.
    `alter role ${role} set idle_in_transaction_session_timeout = '4s'`,
    `alter role ${role} set timezone = 'UTC'`,
  ]
}
