import { dashboard, stat, timeSeries } from './panels.ts'

/** What couriers deliver, and what waits. With several places, a single value is their sum, or that of the worst one. */
export const webhooks = dashboard('wallet-webhooks', 'Wallet: webhooks', [
  {
    title: 'Lag',
    panels: [
      stat('Age of the oldest event', 's', 'max(core_webhook_lag_seconds)', { red: 60 }),
      stat('Events behind', 'short', 'max(core_webhook_lag_events)', { red: 10_000 }),
      stat('Failing webhooks', 'short', 'sum(max by (place) (core_webhooks_failing))', { red: 1 }),
      stat('Paused webhooks', 'short', 'sum(max by (place) (core_webhooks_paused))', { red: 1 }),
      timeSeries('Age of the oldest event', 's', ['max by (place) (core_webhook_lag_seconds)', 'oldest {{place}}']),
      timeSeries(
        'Failing and paused',
        'short',
        ['max by (place) (core_webhooks_failing)', 'failing {{place}}'],
        ['max by (place) (core_webhooks_paused)', 'paused {{place}}'],
      ),
    ],
  },
  {
    title: 'Deliveries',
    panels: [
      timeSeries('Attempts by result', 'reqps', [
        'sum by (result) (rate(courier_attempt_duration_seconds_count[$__rate_interval]))',
        '{{result}}',
      ]),
      timeSeries('99th percentile by result', 's', [
        'histogram_quantile(0.99, sum by (result, le) (rate(courier_attempt_duration_seconds_bucket[$__rate_interval])))',
        '{{result}}',
      ]),
      timeSeries(
        'Attempts in progress and leases',
        'short',
        ['courier_attempts', '{{instance}} attempts'],
        ['courier_leases', '{{instance}} leases'],
      ),
    ],
  },
])
