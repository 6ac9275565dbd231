/** The Prometheus rules and their runbook, as far as they can be checked without a running service. */
import { execFile } from 'node:child_process'
import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import { findProgram } from '../../cli/processes/programs.ts'
import { root } from '../setup/images.ts'
import {
  directory,
  type ExpectedAlert,
  type Rule,
  readPanelQueries,
  readRules,
  readRuleTests,
  selectorsOf,
} from './rules.ts'

let promtool: string
let rules: Rule[]
let alerts: Rule[]
beforeAll(async () => {
  promtool = await findProgram(['promtool'], 'prometheus')
  rules = await readRules()
  alerts = rules.filter(({ alert }) => alert)
}, 300_000)

const ofPlace = ({ exp_labels }: ExpectedAlert) => 'place' in exp_labels
const run = async (...args: string[]) => (await promisify(execFile)(promtool, args, { cwd: directory })).stdout

test('Prometheus accepts the configuration and every rule', async () => {
  const output = await run('check', 'config', 'prometheus/prometheus.yml')
  const found = Array.from(output.matchAll(/(\d+) rules found/g), ([, count]) => Number(count))
  expect(found.reduce((sum, count) => sum + count)).toBe(rules.length)
})

test('every alert fires because of its cause, and not before', async () => {
  const files = await Array.fromAsync(glob('prometheus/tests/*.yml', { cwd: directory }))
  expect(await run('test', 'rules', ...files.sort())).toContain('SUCCESS')
  const tests = await readRuleTests()
  for (const { alert } of alerts) {
    const own = tests.filter(({ alertname, exp_alerts }) => alertname === alert && !exp_alerts?.some(ofPlace))
    const hasFired = new Set(own.map(({ exp_alerts = [] }) => exp_alerts.length > 0))
    expect([...hasFired].sort(), alert).toEqual([false, true])
  }
})

test('an alert about one of several places names it, and another place does not hide it', async () => {
  const tests = await readRuleTests()
  const namePlace = alerts.filter(({ annotations }) => annotations!.summary!.includes('$labels.place'))
  expect(namePlace.length).toBeGreaterThan(20)
  for (const { alert } of namePlace)
    expect(
      tests.filter(({ alertname, exp_alerts }) => alertname === alert && exp_alerts?.some(ofPlace)),
      alert,
    ).toHaveLength(1)
})

test('every alert has a severity, a summary, and a runbook with a symptom, a log line and a command', async () => {
  const page = await readFile(join(root, 'docs/operations.md'), 'utf8')
  for (const { alert, labels, annotations } of alerts) {
    expect(labels!.severity, alert).toMatch(/^(page|ticket)$/)
    expect(annotations!.summary, alert).toBeTruthy()
    expect(annotations!.runbook).toBe(`docs/operations.md#${alert!.toLowerCase()}`)
    const section = page.split(`\n#### ${alert}\n`)[1]?.split(/\n#{2,4} /)[0]
    for (const part of ['**Symptom:**', '**Log:**', '**Command:**']) expect(section, alert).toContain(part)
  }
  const described = Array.from(page.matchAll(/^#### (\w+)$/gm), ([, name]) => name)
  expect(described.sort()).toEqual(alerts.map(({ alert }) => alert).sort())
})

test('the log lines of the runbook are those that the programs write', async () => {
  const page = await readFile(join(root, 'docs/operations.md'), 'utf8')
  const quoted = Array.from(page.matchAll(/^- \*\*Log:\*\* (.*)$/gm), ([, text]) =>
    Array.from(text!.matchAll(/`([^`]+)`/g), ([, line]) => line!),
  ).flat()
  expect(quoted.length).toBeGreaterThan(20)
  let sources = ''
  for await (const file of glob('{services,gateway,packages}/**/src/**/*.ts', { cwd: root }))
    if (!file.endsWith('.test.ts')) sources += await readFile(join(root, file), 'utf8')
  expect(quoted.filter(line => !sources.includes(line))).toEqual([])
})

test('rules and dashboards use only recorded series that a rule records', async () => {
  const recorded = new Set(rules.map(({ record }) => record))
  const expressions = [...rules, ...(await readPanelQueries())].map(({ expr }) => expr)
  const used = expressions.flatMap(selectorsOf).flatMap(({ metric }) => (metric.includes(':') ? [metric] : []))
  expect(used.length).toBeGreaterThan(10)
  for (const metric of used) expect(recorded).toContain(metric)
})
