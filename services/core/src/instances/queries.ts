import {
  type InstanceKind,
  type InstanceReport,
  instanceKeptSeconds,
  instanceSilentSeconds,
  instancesPerName,
} from '@workspace-wallet/contract'
import { type Queryable, run, statement } from '../database/statement.ts'

/** Removed at most at once, of each kind of what is removed. */
const removedAtOnce = 100
/** How many instances of a name stay listed that are not running. */
const silentPerName = 20

const [silent, kept] = [instanceSilentSeconds, instanceKeptSeconds].map(seconds => `interval '${seconds} seconds'`)

/**
 * Updates the instances that are known, and inserts others while there is room under their name. The clock of PostgreSQL sets the
 * times, and limits those that the table does not take: one such report would keep the others of its name from being stored. A report
 * changes no instance of another kind or name.
 */
const storeStatement = statement(
  'store-instances',
  `with reported as (
     select (r ->> 'instanceId')::uuid as id, r ->> 'host' as host, r ->> 'version' as version,
       greatest(statement_timestamp() - (r ->> 'uptimeMs')::float8 * interval '1 millisecond', '1970-01-01T00:00:00Z') as started_at,
       r ->> 'fault' as fault,
       (r ->> 'waiting')::integer as waiting, (r ->> 'unhealthyCores')::integer as unhealthy_cores
     from jsonb_array_elements($3::jsonb) r),
   seen as (
     update instance i set seen_at = statement_timestamp(), version = r.version, fault = r.fault, waiting = r.waiting,
       unhealthy_cores = r.unhealthy_cores
     from reported r where i.id = r.id and i.kind = $1 and i.name = $2)
   insert into instance (id, kind, name, host, version, started_at, fault, waiting, unhealthy_cores)
   select r.id, $1, $2, r.host, r.version, r.started_at, r.fault, r.waiting, r.unhealthy_cores
   from reported r where not exists (select from instance i where i.id = r.id)
   limit (
     select ${instancesPerName} - count(*)
     from (select from instance where kind = $1 and name = $2 limit ${instancesPerName}) listed)
   on conflict do nothing`,
)

const leaveStatement = statement(
  'remove-stopped-instances',
  `delete from instance where kind = $1 and name = $2 and id = any($3::uuid[])`,
)

/**
 * Removes what was not seen for an hour, what has a time to come, and of one name all but the last that are not running. Other cores
 * remove the same rows.
 */
const removeStatement = statement(
  'remove-old-instances',
  `delete from instance where id = any(
     array(select id from instance where seen_at < now() - ${kept} order by seen_at limit ${removedAtOnce}
       for update skip locked)
     || array(select id from instance where seen_at > now() + ${silent} order by seen_at desc limit ${removedAtOnce}
       for update skip locked)
     || array(select id from instance where kind = $1 and name = $2 and seen_at < now() - ${silent}
       order by seen_at desc offset ${silentPerName} limit ${removedAtOnce} for update skip locked))`,
)

const listedStatement = statement<{ id: string }>(
  'find-listed-instances',
  `select id from instance where kind = $1 and name = $2 limit ${2 * instancesPerName}`,
)

/** What was reported under a name: the last report of each instance, and the IDs of those that have stopped. */
export type Reported = { kind: InstanceKind; name: string; reports: InstanceReport[]; stopped: string[] }

/** Stores what instances have reported, and removes what is old. Returns the IDs that are listed under the name. */
export async function storeInstances(db: Queryable, { kind, name, reports, stopped }: Reported): Promise<string[]> {
  await run(db, removeStatement, [kind, name])
  if (stopped.length > 0) await run(db, leaveStatement, [kind, name, stopped])
  if (reports.length > 0) await run(db, storeStatement, [kind, name, JSON.stringify(reports)])
  return (await run(db, listedStatement, [kind, name])).map(({ id }) => id)
}
