import { schemaOf, withoutSchema } from './schema.ts'

/**
 * The settings of every session of core, besides the search path. They are in the startup message of the connection, so they override those of the role,
 * which whoever has its password may change (ALTER ROLE … SET), and those of the database and the server. A setting that
 * nothing of core depends on is left out; test/role-settings.test.ts sets all of them to other values.
 */
const sessionSettings = {
  // What a name, a literal or a statement means.
  role: 'none',
  client_encoding: 'UTF8',
  standard_conforming_strings: 'on',
  backslash_quote: 'safe_encoding',
  array_nulls: 'on',
  transform_null_equals: 'off',
  row_security: 'on',
  restrict_nonsystem_relation_kind: '',
  default_transaction_isolation: 'read committed',
  default_transaction_read_only: 'off',
  default_transaction_deferrable: 'off',
  default_tablespace: '',
  temp_tablespaces: '',
  gin_fuzzy_search_limit: '0',
  local_preload_libraries: '',
  'plpgsql.check_asserts': 'on',
  'plpgsql.extra_errors': 'none',
  'plpgsql.extra_warnings': 'none',

  // The text of a value.
  DateStyle: 'ISO, MDY',
  IntervalStyle: 'postgres',
  TimeZone: 'UTC',
  timezone_abbreviations: 'Default',
  bytea_output: 'hex',
  extra_float_digits: '1',
  lc_monetary: 'C',
  lc_numeric: 'C',
  lc_time: 'C',
  quote_all_identifiers: 'off',

  // When a commit is confirmed, and when a statement, a transaction or a session ends.
  synchronous_commit: 'on',
  lock_timeout: '2s',
  statement_timeout: '10s',
  // Longer than any transaction of core takes: what is older than this can no longer change.
  transaction_timeout: '10s',
  // No transaction idles in normal operation. A core that is frozen or unreachable holds the locks of its workspaces.
  idle_in_transaction_session_timeout: '4s',
  idle_session_timeout: '0',
  client_connection_check_interval: '0',
  tcp_keepalives_count: '0',
  tcp_keepalives_idle: '0',
  tcp_keepalives_interval: '0',
  tcp_user_timeout: '0',
  exit_on_error: 'off',

  // What the server logs and sends besides results.
  client_min_messages: 'notice',
  debug_print_parse: 'off',
  debug_print_plan: 'off',
  debug_print_rewritten: 'off',

  // How a statement is planned. Without JIT and parallel workers, which short statements do not need and which would take the
  // processors of others. Only by index and by nested loops: every statement of core can use an index. With statistics from when a
  // table was small or empty, PostgreSQL would choose scans, and use those plans while the table grows, until the next analyze. Without
  // sorting, where an index has the order: it would read all rows of a workspace by another index, and sort them.
  // hot-statements.test.ts shows that no statement reads more rows than it needs, whatever the statistics.
  constraint_exclusion: 'partition',
  cpu_index_tuple_cost: '0.005',
  cpu_operator_cost: '0.0025',
  cpu_tuple_cost: '0.01',
  cursor_tuple_fraction: '0.1',
  debug_parallel_query: 'off',
  effective_cache_size: '4GB',
  enable_async_append: 'on',
  enable_bitmapscan: 'off',
  enable_distinct_reordering: 'on',
  enable_gathermerge: 'on',
  enable_group_by_reordering: 'on',
  enable_hashagg: 'on',
  enable_hashjoin: 'off',
  enable_incremental_sort: 'on',
  enable_indexonlyscan: 'on',
  enable_indexscan: 'on',
  enable_material: 'on',
  enable_memoize: 'on',
  enable_mergejoin: 'off',
  enable_nestloop: 'on',
  enable_partition_pruning: 'on',
  enable_presorted_aggregate: 'on',
  enable_self_join_elimination: 'on',
  enable_seqscan: 'off',
  enable_sort: 'off',
  enable_tidscan: 'on',
  from_collapse_limit: '8',
  geqo: 'off',
  hash_mem_multiplier: '2',
  jit: 'off',
  join_collapse_limit: '8',
  max_parallel_workers_per_gather: '0',
  plan_cache_mode: 'auto',
  random_page_cost: '4',
  recursive_worktable_factor: '10',
  seq_page_cost: '1',
  work_mem: '4MB',
}

export type SettingChanges = {
  readonly [Name in keyof typeof sessionSettings | 'search_path' | 'citus.override_table_visibility']?: string
}

/** The settings of a session that uses the tables of this schema. */
export function settingsOf(schema: string, changes: SettingChanges = {}): Record<string, string> {
  return { search_path: `${schema},pg_temp`, ...sessionSettings, ...changes }
}

/** The pools of core whose connections may lead to a connection pooler (see pooler.ts), and how their settings differ. */
export const poolSettings = {
  // PostgreSQL would plan the look-up of one row again each time, because it expects more rows of the plan that it keeps, for any
  // number of keys. Planning takes several times as long as the look-up.
  reads: { plan_cache_mode: 'force_generic_plan' },
  lists: {},
  ledger: {
    // Likewise for the statements of `post`, if the first groups of a session were small.
    plan_cache_mode: 'force_generic_plan',
    // Shorter, so that PostgreSQL reports a canceled statement, and thus that nothing was written, before core closes the connection.
    statement_timeout: '3s',
  },
} satisfies Record<string, SettingChanges>

export type PoolName = keyof typeof poolSettings

/**
 * The connection string and the `options` of the startup message for a session with these settings. Options in the URL, which an
 * operator has chosen, come last and have priority.
 */
export function startupOf(url: string, changes: SettingChanges = {}): { connectionString: string; options: string } {
  const target = new URL(withoutSchema(url))
  const chosen = target.searchParams.get('options')
  // The driver would use the options of the URL in place of all others.
  target.searchParams.delete('options')
  const settings = Object.entries(settingsOf(schemaOf(url), changes))
  const options = settings.map(([name, value]) => `-c ${name}=${value.replaceAll(/[\\ ]/g, '\\$&')}`)
  return { connectionString: target.href, options: [...options, ...(chosen === null ? [] : [chosen])].join(' ') }
}
