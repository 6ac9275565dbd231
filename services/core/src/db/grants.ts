/**
 * What the service's role may do: never change or delete an entry, never change what a wallet is.
 * Applied by the migration step every time, so that this list is the truth.
 */
export function grants(role: string): string[] {
  return [
    `revoke all on all tables in schema public from ${role}`,
    `revoke create on schema public from public`,
    `grant usage on schema public to ${role}`,
    `grant select on all tables in schema public to ${role}`,
    `grant insert on workspace, member, access_change, api_key, chain_key, ledger, wallet, transfer, flow to ${role}`,
    // The number and the time of an act are PostgreSQL's.
    `grant insert (actor, act, workspace_id, target, before, after) on audit to ${role}`,
    `grant insert (upload_id, part, content), delete on checkpoint_part to ${role}`,
    `grant update (name, updated_at, deleted_at) on workspace to ${role}`,
    `grant delete on member to ${role}`,
    `grant update (name, status, scopes, ip_allowlist, secret, secret_version, previous_secret, previous_secret_until,
       expires_at, deleted_at, last_used_at, updated_at, revision) on api_key to ${role}`,
    `grant update (revision) on access_revision to ${role}`,
    `grant update (status, wallet_count, order_count, last_posted_at, halt_reason) on ledger to ${role}`,
    `grant update (name, status, balance, sequence, order_count, head, updated_at) on wallet to ${role}`,
    // Limits that hold on every connection, through a connection pooler too.
    `alter role ${role} set lock_timeout = '2s'`,
    `alter role ${role} set statement_timeout = '10s'`,
    // Nobody waits within a transaction: a core that does is frozen, or out of reach, and holds its workspaces' locks.
    `alter role ${role} set idle_in_transaction_session_timeout = '4s'`,
    `alter role ${role} set timezone = 'UTC'`,
  ]
}
