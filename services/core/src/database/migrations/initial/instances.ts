import { bounded } from './bounded.ts'
import { shownTimes } from './times.ts'

/**
 * The processes of the service, as they report themselves. They decide nothing, so they are not signed. Whoever has the service's role
 * can store any; the constraints keep such a row from making the list of all fail.
 */
export const instances = `
  create table instance (
    id uuid primary key,
    kind text not null check (kind in ('core', 'gateway', 'courier')),
    name text not null,
    host text not null,
    version text not null,
    started_at timestamptz(3) not null,
    seen_at timestamptz(3) not null default clock_timestamp(),
    fault text,
    waiting integer not null check (waiting >= 0),
    unhealthy_cores integer not null check (unhealthy_cores >= 0),
    ${shownTimes('started_at', 'seen_at')},
    -- 200 characters, of up to four bytes each.
    ${bounded(800, 'fault')},
    ${bounded(256, 'name', 'host', 'version')}
  );
  create index instance_seen on instance (seen_at);
  create index instance_name on instance (kind, name, seen_at);
`
