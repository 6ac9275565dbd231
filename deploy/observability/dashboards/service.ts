import { dashboard, reserve, stat, timeSeries } from './panels.ts'

/** Programs, requests, and the objectives of creates. */
export const service = dashboard('wallet-service', 'Wallet: service', [
  {
    title: 'Objectives of creates: 99.9 % succeed, 99 % within 250 ms',
    panels: [
      reserve('Creates that succeed, last hour', 'percentunit', '1 - slo:create_failures:ratio_rate1h', {
        green: 0.999,
      }),
      reserve('Creates within 250 ms, last hour', 'percentunit', '1 - slo:create_slow:ratio_rate1h', { green: 0.99 }),
      reserve('Creates that succeed, three days', 'percentunit', '1 - slo:create_failures:ratio_rate3d', {
        green: 0.999,
      }),
      reserve('Creates within 250 ms, three days', 'percentunit', '1 - slo:create_slow:ratio_rate3d', { green: 0.99 }),
      stat('Alerts that fire', 'short', 'count(ALERTS{alertstate="firing"}) or vector(0)', { red: 1 }),
      stat('Instances down', 'short', 'count(up == 0) or vector(0)', { red: 1 }),
      timeSeries('Creates', 'reqps', ['slo:creates:rate5m', 'creates']),
      timeSeries(
        'Time of a create',
        's',
        ['slo:create_duration_seconds:p50_5m', 'median'],
        ['slo:create_duration_seconds:p99_5m', '99th percentile'],
      ),
      timeSeries(
        'Burn rate (1: the budget lasts 30 days)',
        'short',
        ['slo:create_failures:ratio_rate1h / 0.001', 'failures'],
        ['slo:create_slow:ratio_rate1h / 0.01', 'slow'],
      ),
    ],
  },
  {
    title: 'Requests',
    panels: [
      timeSeries('Requests by code', 'reqps', [
        'sum by (code) (rate(gateway_request_duration_seconds_count[$__rate_interval]))',
        '{{code}}',
      ]),
      timeSeries('Rejections by step', 'reqps', [
        'sum by (step) (rate(gateway_rejections_total[$__rate_interval]))',
        '{{step}}',
      ]),
      timeSeries('99th percentile by endpoint', 's', [
        'histogram_quantile(0.99, sum by (route, le) (rate(gateway_request_duration_seconds_bucket[$__rate_interval])))',
        '{{route}}',
      ]),
      timeSeries('Denied requests by code', 'reqps', [
        'sum by (code) (rate(gateway_denied_total[$__rate_interval]))',
        '{{code}}',
      ]),
      timeSeries('Time of the nonce store', 's', [
        'histogram_quantile(0.99, sum by (outcome, le) (rate(gateway_nonce_store_duration_seconds_bucket[$__rate_interval])))',
        '{{outcome}}, 99th percentile',
      ]),
      timeSeries('API keys in memory', 'short', ['sum by (state) (gateway_keys)', '{{state}}']),
    ],
  },
  {
    title: 'Between the programs',
    panels: [
      timeSeries(
        'Parts that are up',
        'short',
        ['gateway_part_up', '{{instance}} {{part}}'],
        ['courier_part_up', '{{instance}} {{part}}'],
      ),
      timeSeries('Calls of core', 'short', ['gateway_core_calls', '{{instance}} {{state}}']),
      timeSeries(
        'Unhealthy cores',
        'short',
        ['gateway_unhealthy_cores', '{{instance}}'],
        ['courier_unhealthy_cores', '{{instance}}'],
      ),
      timeSeries('Calls by code', 'reqps', [
        'sum by (code) (rate(core_call_duration_seconds_count[$__rate_interval]))',
        '{{code}}',
      ]),
      timeSeries('99th percentile by procedure', 's', [
        'histogram_quantile(0.99, sum by (path, le) (rate(core_call_duration_seconds_bucket{path!="unknown"}[$__rate_interval])))',
        '{{path}}',
      ]),
      timeSeries('Answers of core that were closed unread', 'short', [
        'increase(core_closed_answers_total[$__rate_interval])',
        '{{instance}}',
      ]),
    ],
  },
  {
    title: 'Processes',
    panels: [
      timeSeries('CPUs', 'short', ['rate(process_cpu_seconds_total[$__rate_interval])', '{{job}} {{instance}}']),
      timeSeries('Memory', 'bytes', ['process_resident_memory_bytes', '{{job}} {{instance}}']),
      timeSeries('Lag of the event loop', 's', ['nodejs_eventloop_lag_p99_seconds', '{{job}} {{instance}}']),
      timeSeries(
        'Memory for bodies',
        'bytes',
        ['gateway_body_bytes', '{{instance}}'],
        ['core_body_bytes', '{{instance}}'],
      ),
      timeSeries(
        'Memory for responses',
        'bytes',
        ['gateway_response_bytes', '{{instance}}'],
        ['core_unread_answer_bytes', '{{instance}}'],
      ),
      timeSeries(
        'Lost log lines',
        'short',
        ['increase(core_log_lines_lost_total[$__rate_interval])', '{{instance}}'],
        ['increase(gateway_log_lines_lost_total[$__rate_interval])', '{{instance}}'],
        ['increase(courier_log_lines_lost_total[$__rate_interval])', '{{instance}}'],
      ),
      timeSeries(
        'Versions',
        'short',
        ['count by (version, node) (core_build_info)', 'core {{version}}, Node.js {{node}}'],
        ['count by (version, node) (gateway_build_info)', 'gateway {{version}}, Node.js {{node}}'],
        ['count by (version, node) (courier_build_info)', 'courier {{version}}, Node.js {{node}}'],
      ),
    ],
  },
])
