import { dashboard, reserve, stat, timeSeries } from './panels.ts'

/** PostgreSQL, as core sees it. With several places, a single value is that of the worst one. */
export const database = dashboard('wallet-database', 'Wallet: database', [
  {
    title: 'State',
    panels: [
      stat('Oldest transaction', 's', 'max(core_database_oldest_transaction_seconds)', { red: 300 }),
      reserve('Transactions until writes are refused', 'short', 'min(core_database_transactions_left)', { green: 5e8 }),
      reserve(
        'Synchronous standbys beyond those required',
        'short',
        'min(max by (place) (core_database_synchronous_standbys{state="connected"}) - max by (place) (core_database_synchronous_standbys{state="required"}))',
        { green: 0 },
      ),
      stat('Lag of the slowest standby', 'bytes', 'max(core_database_standby_lag_bytes)', { red: 2 ** 30 }),
      reserve(
        'Free share of the data disk',
        'percentunit',
        'min(core_data_disk_bytes{state="available"}) / max(core_data_disk_bytes{state="total"})',
        {
          green: 0.1,
        },
      ),
      stat('Callers that wait for connections', 'short', 'sum(core_database_connections{state="awaited"})', { red: 1 }),
      stat('Unreadable figures', 'short', 'count(min by (name, place) (core_figure_unreadable) > 0) or vector(0)', {
        red: 1,
      }),
    ],
  },
  {
    title: 'Over time',
    panels: [
      timeSeries('Connections', 'short', [
        'sum by (pool, state, place) (core_database_connections)',
        '{{pool}} {{state}} {{place}}',
      ]),
      timeSeries('Lag of standbys', 'bytes', [
        'max by (standby, sync_state, place) (core_database_standby_lag_bytes)',
        '{{standby}} ({{sync_state}}) {{place}}',
      ]),
      timeSeries('Log kept for archives and standbys', 'bytes', [
        'max by (receiver, place) (core_database_log_receiver_lag_bytes)',
        '{{receiver}} {{place}}',
      ]),
      timeSeries('Oldest transaction', 's', [
        'max by (place) (core_database_oldest_transaction_seconds)',
        'oldest {{place}}',
      ]),
      timeSeries('Transactions until writes are refused', 'short', [
        'min by (place) (core_database_transactions_left)',
        'left {{place}}',
      ]),
      timeSeries('Data disk', 'bytes', ['max by (instance, state) (core_data_disk_bytes)', '{{instance}} {{state}}']),
      timeSeries('Refused connections', 'short', [
        'sum by (reason, place) (rate(core_database_refused_total[$__rate_interval]))',
        '{{reason}} {{place}}',
      ]),
      timeSeries(
        'Foreign sessions',
        'short',
        ['max by (place) (core_foreign_sessions)', 'open {{place}}'],
        ['sum by (place) (core_foreign_sessions_ended_total)', 'ended {{place}}'],
      ),
    ],
  },
])
