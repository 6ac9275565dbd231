import { type Queryable, run, statement } from '../database/statement.ts'

/** More open holds are not counted, so that reading the metric costs the same for any number of them. */
export const maxCountedHolds = 10_000

const countOpenStatement = statement<{ open: number }>(
  'count-open-holds',
  `select case when counted < ${maxCountedHolds} then counted
     else greatest(counted, (select reltuples from pg_class where oid = 'hold_due'::regclass)) end::float8 as open
   from (select count(*) as counted from (select from hold where status = 'OPEN' limit ${maxCountedHolds}) _) _`,
)

/** How many holds are stored as OPEN: exact below `maxCountedHolds`, from there on the estimate of PostgreSQL. */
export async function countOpenHolds(db: Queryable): Promise<number> {
  const [row] = await run(db, countOpenStatement, [])
  return row!.open
}

export const expiryDelayStatement = statement<{ seconds: number }>(
  'read-expiry-delay',
  `select extract(epoch from statement_timestamp() - hold.expires_at)::float8 as seconds
   from hold join ledger on ledger.workspace_id = hold.workspace_id
   where hold.status = 'OPEN' and ledger.status = 'OPEN' and hold.expires_at <= statement_timestamp()
     and hold.expires_at > statement_timestamp() - interval '10 minutes'
   order by hold.expires_at limit 1`,
)

/**
 * How many seconds ago the oldest hold expired whose expiry is not written yet; 0 without one. Holds that expired more than ten
 * minutes ago do not count, because those of closed workspaces are never written.
 */
export async function readExpiryDelay(db: Queryable): Promise<number> {
  const [oldest] = await run(db, expiryDelayStatement, [])
  return oldest?.seconds ?? 0
}
