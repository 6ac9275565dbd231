/** Reads the rules, dashboards and tests of deploy/observability. */
import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parser } from '@prometheus-io/lezer-promql'
import { parse } from 'yaml'
import { root } from '../setup/images.ts'

export const directory = join(root, 'deploy/observability')

export type Rule = {
  file: string
  record?: string
  alert?: string
  expr: string
  labels?: Record<string, string>
  annotations?: Record<string, string>
}

export async function readRules(): Promise<Rule[]> {
  const rules: Rule[] = []
  for await (const file of glob('prometheus/rules/*.yml', { cwd: directory })) {
    const { groups } = parse(await readFile(join(directory, file), 'utf8'))
    for (const group of groups) for (const rule of group.rules) rules.push({ ...rule, file })
  }
  return rules
}

export type ExpectedAlert = { exp_labels: Record<string, string> }
type RuleTest = { alertname: string; eval_time: string; exp_alerts?: ExpectedAlert[] }

/** The unit tests of rules, as promtool reads them. */
export async function readRuleTests(): Promise<RuleTest[]> {
  const tests: RuleTest[] = []
  for await (const file of glob('prometheus/tests/*.yml', { cwd: directory }))
    for (const test of parse(await readFile(join(directory, file), 'utf8')).tests) tests.push(...test.alert_rule_test)
  return tests
}

export type PanelQuery = { dashboard: string; panel: string; expr: string; legend: string }

export async function readPanelQueries(): Promise<PanelQuery[]> {
  const queries: PanelQuery[] = []
  for await (const file of glob('grafana/dashboards/*.json', { cwd: directory })) {
    const { title, panels } = JSON.parse(await readFile(join(directory, file), 'utf8'))
    for (const panel of panels)
      for (const { expr, legendFormat } of panel.targets ?? [])
        queries.push({
          dashboard: title,
          panel: panel.title,
          // Grafana chooses at least four times the scrape interval.
          expr: expr.replaceAll('$__rate_interval', '1m'),
          legend: legendFormat,
        })
  }
  return queries
}

/**
 * A metric that an expression reads, and the labels that it names of it. `matchers` are those with `=` and `=~`.
 *
 * `groupedBy`: null if it is not aggregated.
 */
export type Selector = { metric: string; matchers: { label: string; value: string }[]; groupedBy: string[] | null }

/** @throws Error if the expression is not valid PromQL */
export function selectorsOf(expr: string): Selector[] {
  const selectors: Selector[] = []
  const textOf = ({ from, to }: { from: number; to: number }) => expr.slice(from, to)
  parser.parse(expr).iterate({
    enter(node) {
      if (node.type.isError) throw new Error(`"${expr}" is not PromQL at position ${node.from}`)
      if (node.name !== 'VectorSelector') return
      const selector: Selector = { metric: textOf(node.node.getChild('Identifier')!), matchers: [], groupedBy: null }
      node.node.cursor().iterate(child => {
        if (child.name !== 'UnquotedLabelMatcher') return
        const label = textOf(child.node.getChild('LabelName')!)
        const value = JSON.parse(textOf(child.node.getChild('StringLiteral')!)) as string
        selector.matchers.push({ label, value })
      })
      for (let parent = node.node.parent; parent; parent = parent.parent) {
        if (parent.name !== 'AggregateExpr') continue
        const groupedBy: string[] = []
        selector.groupedBy = groupedBy
        parent
          .getChild('AggregateModifier')
          ?.cursor()
          .iterate(child => {
            if (child.name === 'LabelName') groupedBy.push(textOf(child))
          })
        break
      }
      selectors.push(selector)
    },
  })
  return selectors
}
