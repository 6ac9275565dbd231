import { dashboard, stat, timeSeries } from './panels.ts'

/**
 * Postings, holds and lists, and whether rows were modified outside the service. With several places, a single value is their sum, or that
 * of the worst one.
 */
export const ledger = dashboard('wallet-ledger', 'Wallet: ledger', [
  {
    title: 'Integrity',
    panels: [
      stat('Halted workspaces', 'short', 'sum(max by (place) (core_halted_workspaces))', { red: 1 }),
      stat('Modified rows', 'short', 'sum(core_modified_rows_total) or vector(0)', { red: 1 }),
      stat('Foreign sessions', 'short', 'sum(max by (place) (core_foreign_sessions))', { red: 1 }),
      stat('Foreign sessions ended', 'short', 'sum(core_foreign_sessions_ended_total)', { red: 1 }),
      stat('Since the last look for them', 's', 'max(core_foreign_sessions_look_age_seconds)', { red: 10 }),
      stat('Delay of expiries', 's', 'max(core_hold_expiry_delay_seconds)', { red: 60 }),
      stat(
        'Since the last verification',
        's',
        'max(time() - max by (place) (core_last_verification_timestamp_seconds))',
        {
          red: 172_800,
        },
      ),
      stat(
        'Unsound verifications',
        'short',
        'count(min by (kind, place) (core_verification_sound) == 0) or vector(0)',
        {
          red: 1,
        },
      ),
      stat('Since the last checkpoint', 's', 'max(time() - max by (place) (core_last_checkpoint_timestamp_seconds))', {
        red: 691_200,
      }),
      stat('Since the last backup', 's', 'max(time() - max by (place) (core_last_backup_timestamp_seconds))', {
        red: 172_800,
      }),
      stat('Postings that wait', 'short', 'sum(core_postings{state="waiting"})', { red: 200 }),
    ],
  },
  {
    title: 'Postings',
    panels: [
      timeSeries('Events by type', 'reqps', ['sum by (type) (rate(core_events_total[$__rate_interval]))', '{{type}}']),
      timeSeries('Postings', 'short', [
        'sum by (instance, state, place) (core_postings)',
        '{{instance}} {{state}} {{place}}',
      ]),
      timeSeries('Batches', 'reqps', [
        'sum by (instance, place) (rate(core_batch_duration_seconds_count[$__rate_interval]))',
        '{{instance}} {{place}}',
      ]),
      timeSeries(
        'Time of a batch',
        's',
        [
          'histogram_quantile(0.5, sum by (le, place) (rate(core_batch_duration_seconds_bucket[$__rate_interval])))',
          'median {{place}}',
        ],
        [
          'histogram_quantile(0.99, sum by (le, place) (rate(core_batch_duration_seconds_bucket[$__rate_interval])))',
          '99th percentile {{place}}',
        ],
      ),
      timeSeries('Postings in a batch', 'short', [
        'sum(rate(core_batch_postings_sum[$__rate_interval])) / sum(rate(core_batch_postings_count[$__rate_interval]))',
        'mean',
      ]),
      timeSeries('Open holds', 'short', ['max by (place) (core_open_holds)', 'open {{place}}']),
    ],
  },
  {
    title: 'Reads',
    panels: [
      timeSeries('Lists', 'short', ['sum by (kind, state, place) (core_lists)', '{{kind}} {{state}} {{place}}']),
      timeSeries('Modified rows by table', 'short', [
        'sum by (table, place) (core_modified_rows_total)',
        '{{table}} {{place}}',
      ]),
    ],
  },
])
