-- Locks the ledgers of a batch, as the first release did.
select workspace_id as "workspaceId", status, order_count as "orderCount", last_posted_at as "lastPostedAt"
from ledger where workspace_id = any ($1::uuid[])
order by workspace_id for no key update
