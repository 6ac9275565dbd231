/** The panels of the dashboards, by what they show. Grafana places them in rows of a grid of 24 columns. */
import type * as cog from '@grafana/grafana-foundation-sdk/cog'
import { ReduceDataOptionsBuilder, VizOrientation } from '@grafana/grafana-foundation-sdk/common'
import {
  type Dashboard,
  DashboardBuilder,
  DatasourceVariableBuilder,
  type Panel,
  RowBuilder,
  ThresholdsConfigBuilder,
  ThresholdsMode,
} from '@grafana/grafana-foundation-sdk/dashboard'
import { DataqueryBuilder } from '@grafana/grafana-foundation-sdk/prometheus'
import { PanelBuilder as StatBuilder } from '@grafana/grafana-foundation-sdk/stat'
import { PanelBuilder as TimeSeriesBuilder } from '@grafana/grafana-foundation-sdk/timeseries'

/** A unit of Grafana's standard options. */
type Unit = 's' | 'bytes' | 'reqps' | 'percentunit' | 'short'
/** PromQL, and the name of each series: labels in double braces. */
type Query = [expr: string, legend: string]
type AnyPanel = cog.Builder<Panel>
export type Row = { title: string; panels: AnyPanel[] }

/** The data source that the reader of the dashboard selects. */
// biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana replaces it
const datasource = { type: 'prometheus', uid: '${datasource}' }
const columns = 24

function targets(queries: Query[]): DataqueryBuilder[] {
  return queries.map(([expr, legend], at) =>
    new DataqueryBuilder()
      .expr(expr)
      .legendFormat(legend)
      .refId(String.fromCharCode('A'.charCodeAt(0) + at)),
  )
}

/** A third of the width: lines over time. */
export function timeSeries(title: string, unit: Unit, ...queries: Query[]): AnyPanel {
  return new TimeSeriesBuilder()
    .title(title)
    .unit(unit)
    .min(0)
    .datasource(datasource)
    .span(columns / 3)
    .height(7)
    .targets(targets(queries))
}

/** A sixth of the width: the latest value, green below `red` and red from there on. */
export function stat(
  title: string,
  unit: Unit,
  expr: string,
  { red, legend = '' }: { red: number; legend?: string },
): AnyPanel {
  return valuePanel(
    title,
    unit,
    [expr, legend],
    [
      { value: null, color: 'green' },
      { value: red, color: 'red' },
    ],
  )
}

/** A sixth of the width: the latest value, red below `green` and green from there on. */
export function reserve(
  title: string,
  unit: Unit,
  expr: string,
  { green, legend = '' }: { green: number; legend?: string },
): AnyPanel {
  return valuePanel(
    title,
    unit,
    [expr, legend],
    [
      { value: null, color: 'red' },
      { value: green, color: 'green' },
    ],
  )
}

function valuePanel(
  title: string,
  unit: Unit,
  query: Query,
  steps: { value: number | null; color: string }[],
): AnyPanel {
  return new StatBuilder()
    .title(title)
    .unit(unit)
    .datasource(datasource)
    .span(columns / 6)
    .height(4)
    .orientation(VizOrientation.Auto)
    .reduceOptions(new ReduceDataOptionsBuilder().calcs(['lastNotNull']))
    .thresholds(new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps(steps))
    .targets(targets([query]))
}

export function dashboard(uid: string, title: string, rows: Row[]): Dashboard {
  const builder = new DashboardBuilder(title)
    .uid(uid)
    .tags(['workspace-wallet'])
    .refresh('30s')
    .time({ from: 'now-3h', to: 'now' })
    .timezone('browser')
    .readonly()
    .withVariable(new DatasourceVariableBuilder('datasource').label('Data source').type('prometheus'))
  for (const row of rows) {
    builder.withRow(new RowBuilder(row.title))
    for (const panel of row.panels) builder.withPanel(panel)
  }
  const built = builder.build()
  built.panels?.forEach((panel, at) => {
    panel.id = at + 1
  })
  return built
}
