/**
 * The SQL that sets the rights of the service role. The migration step applies it on every run, so no other right and no setting of
 * the role remains. docs/threat-model.md lists what an attacker can still do with this role. Core rejects rows that were written
 * without the chain key, and `ledger verify` reports them.
 */
export function grants(role: string, database: string, schema: string): string[] {
  return [
    `revoke all on all tables in schema ${schema} from ${role}`,
    // Citus leaves out views where all tables are named.
    `revoke all on flow from ${role}`,
    `revoke all on all functions in schema ${schema} from public`,
    `revoke create on schema ${schema} from public`,
    // Core has no temporary objects. Those of others are in the catalog, which verifications read, whatever their size.
    `revoke temporary on database ${database} from public, ${role}`,
    // Those of `public` have it: reports may read what they are granted.
    `grant usage on schema ${schema} to public, ${role}`,
    `grant select on all tables in schema ${schema} to ${role}`,
    `grant select on flow to ${role}`,

    // Create workspaces, members, keys, operators and webhooks. Each row has a MAC. There is no DELETE: a deleted row could be
    // inserted again with its MAC.
    `grant insert on workspace, member, api_key, operator, webhook to ${role}`,
    // Delete a workspace by setting deleted_at. No procedure changes its name.
    `grant update (updated_at, deleted_at, revision, mac) on workspace to ${role}`,
    // Remove a member, and add the member again.
    `grant update (created_at, removed_at, revision, mac) on member to ${role}`,
    // Change a key, except for its owner, workspace and name.
    `grant update (status, scopes, ip_allowlist, secret, secret_version, previous_secret, previous_secret_until,
       expires_at, deleted_at, last_used_at, updated_at, access_revision, revision, mac) on api_key to ${role}`,
    // Change an operator, except for the name.
    `grant update (role, status, token_hash, token_version, expires_at, created_at, updated_at, revision, mac)
       on operator to ${role}`,
    // Change a webhook, except for its workspace and bizId, and the state of its delivery.
    `grant update (url, types, concurrency, status, secret, secret_version, previous_secret, previous_secret_until,
       deleted_at, updated_at, position, generation, leased_generation, leased_until, next_attempt_at, failures,
       failing_since, last_status, last_error, last_attempt_at, revision, mac) on webhook to ${role}`,
    // Say where a workspace moves. Each row has a MAC, and there is no DELETE.
    `grant insert, update (generation, state, from_place, to_place, at, access_revision, revision, mac)
       on workspace_move to ${role}`,
    // For the triggers of the tables that the role writes: whether the owner moves a workspace.
    `grant execute on function is_moved_by_owner to ${role}`,

    // Raise the access revision by one. A trigger rejects any other change and records the epoch of each revision.
    `grant update (revision) on access_revision to ${role}`,
    // Lock what gives access, and webhooks: these are locks of tables, which a role with rights to some columns may not lock itself.
    `grant execute on function lock_access, lock_webhooks to ${role}`,

    // Only these functions write ledgers, wallets, holds, limits, transfers and the journal. They check every change.
    `grant execute on function lock_ledgers, lockable_ledgers, open_ledger, create_wallet, change_wallet_status,
       change_ledger_status, repair_wallet, repair_ledger, change_holds, set_limit, count_spending, post, post_transfer
       to ${role}`,

    // Append to the audit. A trigger checks the position and the time, and PostgreSQL assigns the id.
    `grant insert (at, actor, action, workspace_id, target, before, after, reason, request_id, position, mac) on audit to ${role}`,
    `grant execute on function lock_audit to ${role}`,

    // The first core on a new database stores the fingerprint of its chain key. The table holds one row.
    `grant insert on chain_key to ${role}`,

    // Upload a checkpoint in parts for a comparison, and delete the parts afterwards.
    `grant insert, delete on checkpoint_part to ${role}`,

    // Replace where the last sound verification ended. The audit has a digest of the rows.
    `grant insert, delete on verified_ledger to ${role}`,

    // Read figures of the server for /metrics.
    `grant execute on function oldest_transaction_start, replication_state to ${role}`,

    // Store refused calls, and remove old ones. They decide nothing.
    `grant insert (at, gateway, method, route, code, step, detail, api_key, address, request_id, is_signed), delete
       on refusal to ${role}`,

    // Store what instances report about themselves, and remove those that are gone. They decide nothing.
    `grant insert, update (seen_at, version, fault, waiting, unhealthy_cores), delete on instance to ${role}`,

    // Set the settings of the sessions of a connection pooler.
    `grant execute on function set_session to ${role}`,

    // The settings of core's sessions come with each connection (see session-settings.ts).
    `alter role ${role} reset all`,
    `alter role ${role} in database ${database} reset all`,
  ]
}
