import { type Queryable, run, statement } from '../database/statement.ts'

export type WebhookFigures = { failing: number; paused: number; lagEvents: number; lagSeconds: number }

const readFiguresStatement = statement<WebhookFigures>(
  'read-webhook-figures',
  `select count(*) filter (where w.status = 'ACTIVE' and w.failing_since is not null)::float8 as failing,
     count(*) filter (where w.status = 'PAUSED')::float8 as paused,
     coalesce(max(l.position - w.position) filter (where waits), 0)::float8 as "lagEvents",
     coalesce(extract(epoch from statement_timestamp() - min(next.created_at) filter (where waits)), 0)::float8
       as "lagSeconds"
   from webhook w join ledger l on l.workspace_id = w.workspace_id,
     lateral (select w.status = 'ACTIVE' and w.failing_since is null and l.position > w.position as waits) _
     left join lateral (
       (select created_at from transfer t where t.workspace_id = w.workspace_id and t.position = w.position + 1 and waits)
       union all
       (select created_at from journal j where j.workspace_id = w.workspace_id and j.position = w.position + 1 and waits)
     ) next on true
   where w.deleted_at is null and l.status = 'OPEN'`,
)

/**
 * Webhooks of open workspaces: how many are failing or paused, and the largest lag of the others. A failing webhook does not
 * count towards the lag, so a lag means that couriers do not keep up.
 */
export async function readWebhookFigures(db: Queryable): Promise<WebhookFigures> {
  const [figures] = await run(db, readFiguresStatement, [])
  return figures!
}
