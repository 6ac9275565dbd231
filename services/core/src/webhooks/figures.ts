import { type Queryable, run, statement } from '../database/statement.ts'
import type { Metrics } from '../metrics/metrics.ts'

type WebhookFigures = { failing: number; paused: number; lagEvents: number; lagSeconds: number }

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

const metrics: [name: string, help: string, figure: keyof WebhookFigures][] = [
  ['core_webhooks_failing', 'Active webhooks whose last attempt failed', 'failing'],
  ['core_webhooks_paused', 'Webhooks that are paused: npm run admin -- webhook list', 'paused'],
  ['core_webhook_lag_events', 'Undelivered events of the webhook that has the most, failing ones aside', 'lagEvents'],
  ['core_webhook_lag_seconds', 'Age of the oldest event that waits for a webhook, failing ones aside', 'lagSeconds'],
]

/**
 * Exports how many webhooks of open workspaces are failing or paused, and the largest lag of the others. A failing webhook does
 * not count towards the lag, so a lag means that couriers do not keep up.
 */
export function watchWebhooks(to: Metrics, db: Queryable): void {
  // A scrape reads all four at the same time, with one statement.
  let reading: Promise<WebhookFigures> | undefined
  const read = () => {
    reading ??= readFigures(db).finally(() => {
      reading = undefined
    })
    return reading
  }
  for (const [name, help, figure] of metrics) to.watchDatabase(name, help, async () => (await read())[figure])
}

/** Reads them with one statement. */
export async function readFigures(db: Queryable): Promise<WebhookFigures> {
  const [figures] = await run(db, readFiguresStatement, [])
  return figures!
}
