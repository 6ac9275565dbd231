-- Reads the wallets of a batch and the last flow of each, as the first release did.
select w.workspace_id as "workspaceId", w.id, w.kind, w.currency, w.status, w.balance, w.sequence,
  w.order_count as "orderCount", w.head, f.balance_after as "lastBalance", f.mac as "lastMac",
  date_trunc('milliseconds', clock_timestamp()) as now
from unnest($1::uuid[], $2::uuid[]) as asked (workspace_id, id)
cross join lateral (
  select * from wallet where wallet.workspace_id = asked.workspace_id and wallet.id = asked.id limit 1) w
left join lateral (
  select balance_after, mac from flow
  where flow.workspace_id = w.workspace_id and flow.wallet_id = w.id and flow.sequence = w.sequence limit 1) f on true
