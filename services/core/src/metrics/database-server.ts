import { type Queryable, run, statement } from '../database/statement.ts'
import type { LabelledValue, Metrics } from './metrics.ts'

type ServerFigures = { oldestTransactionSeconds: number; transactionsLeft: number }
type Standby = { name: string; syncState: string; lagBytes: number }
/** `lagBytes`: null for a slot for which PostgreSQL has not kept the log. */
type Receiver = { name: string; isUp: boolean; lagBytes: number | null }
type Replication = {
  /** Standbys that must confirm each commit, by synchronous_standby_names; null if core may not see which ones are connected. */
  required: number | null
  standbys: Standby[]
}

/**
 * The transaction IDs that are left: PostgreSQL refuses writes three million before the oldest one would be used again. IDs of
 * multixacts, which rows have that several transactions lock, are used up in the same way.
 */
const readFiguresStatement = statement<ServerFigures>(
  'read-server-figures',
  `select coalesce(extract(epoch from clock_timestamp() - least(
       oldest_transaction_start(),
       (select min(xact_start) from pg_stat_activity
        where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()),
       (select min(prepared) from pg_prepared_xacts where database = current_database()))), 0)::float8
       as "oldestTransactionSeconds",
     (select 2147483648 - 3000000 - max(greatest(age(datfrozenxid), mxid_age(datminmxid))) from pg_database)::float8
       as "transactionsLeft"`,
)

const readReplicationStatement = statement<Replication>(
  'read-replication',
  `select case
       when not pg_has_role((select relowner from pg_class where oid = 'ledger'::regclass), 'pg_read_all_stats', 'usage') then null
       when setting ~ '^\\s*$' then 0
       else coalesce((regexp_match(setting, '^\\s*(?:(?:any|first)\\s+)?(\\d+)\\s*\\(', 'i'))[1]::int, 1)
     end as required,
     coalesce((select json_agg(json_build_object('name', name, 'syncState', sync_state, 'lagBytes', lag_bytes))
       from replication_state()), '[]') as standbys
   from current_setting('synchronous_standby_names') as setting`,
)

/**
 * Who receives the write-ahead log and makes PostgreSQL keep it meanwhile: the archiver, and the owners of replication slots. The
 * archiver archives whole segments.
 */
const readReceiversStatement = statement<Receiver>(
  'read-log-receivers',
  `select slot_name::text as name, active as "isUp",
     pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::float8 as "lagBytes"
   from pg_replication_slots where not temporary
   union all
   select 'archiver', coalesce(last_failed_time < last_archived_time, last_failed_time is null),
     pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8
       - (coalesce((select segment_number from pg_split_walfile_name(substring(last_archived_wal, '^[0-9A-F]{24}'))), 0) + 1)::float8
       * pg_size_bytes(current_setting('wal_segment_size'))
   from pg_stat_archiver where current_setting('archive_mode') <> 'off'`,
)

/**
 * Exports the state of PostgreSQL: the age of the oldest transaction, the distance to the wraparound of transaction IDs, the
 * standbys, and the receivers of the log. Without the rights to see standbys (see monitoring.ts), their metrics have no series.
 */
export function watchDatabaseServer(to: Metrics, db: Queryable): void {
  const readFigures = async () => (await run(db, readFiguresStatement, []))[0]!
  const readReceivers = () => run(db, readReceiversStatement, [])
  const readReplication = async () => (await run(db, readReplicationStatement, []))[0]!
  to.watchDatabase(
    'core_database_oldest_transaction_seconds',
    'Age of the oldest open transaction of the database, which keeps PostgreSQL from removing old row versions',
    async () => (await readFigures()).oldestTransactionSeconds,
  )
  to.watchDatabase(
    'core_database_transactions_left',
    'Transactions until PostgreSQL refuses writes, unless old rows are frozen before',
    async () => (await readFigures()).transactionsLeft,
  )
  to.watchDatabaseSeries(
    'core_database_standby_lag_bytes',
    'Write-ahead log that a standby has not replayed yet, by its application_name and synchronization state',
    ['standby', 'sync_state'],
    async () => {
      const { standbys } = await readReplication()
      // Two standbys may have the same name: the one that is further behind counts.
      return standbys
        .toSorted((a, b) => a.lagBytes - b.lagBytes)
        .map(({ name, syncState, lagBytes }) => ({ labels: { standby: name, sync_state: syncState }, value: lagBytes }))
    },
  )
  to.watchDatabaseSeries(
    'core_database_synchronous_standbys',
    'Synchronous standbys that must confirm each commit, and that are connected',
    ['state'],
    async () => synchronousStandbys(await readReplication()),
  )
  to.watchDatabaseSeries(
    'core_database_log_receiver_up',
    'Whether a receiver of the write-ahead log gets it: the archiver of PostgreSQL, or the owner of a replication slot',
    ['receiver'],
    async () => (await readReceivers()).map(({ name, isUp }) => ({ labels: { receiver: name }, value: isUp ? 1 : 0 })),
  )
  to.watchDatabaseSeries(
    'core_database_log_receiver_lag_bytes',
    'Write-ahead log that PostgreSQL keeps for a receiver, which does not have it yet',
    ['receiver'],
    async () =>
      (await readReceivers()).flatMap(({ name, lagBytes }) =>
        lagBytes === null ? [] : [{ labels: { receiver: name }, value: Math.max(0, lagBytes) }],
      ),
  )
}

function synchronousStandbys({ required, standbys }: Replication): LabelledValue[] {
  if (required === null) return []
  const connected = standbys.filter(({ syncState }) => syncState === 'sync' || syncState === 'quorum').length
  return [
    { labels: { state: 'required' }, value: required },
    { labels: { state: 'connected' }, value: connected },
  ]
}
