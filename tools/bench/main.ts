/** `npm run bench` measures what docs/performance.md promises, against what others do on the same machine. */
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { anyText, type Values } from '../../cli/command-line/flags.ts'
import { createCommand, runProgram } from '../../cli/command-line/program.ts'
import { listOf } from '../../cli/command-line/sentence.ts'
import { sayWithin } from '../services/say.ts'
import { measureEdge } from './edge.ts'
import { measureLists } from './lists.ts'
import { describeMachine } from './machine.ts'
import { measureMemory } from './memory.ts'
import { measureNeighbours } from './neighbours.ts'
import { type Findings, reportOf, textOf } from './report.ts'
import { fullSettings, quickSettings, type Settings } from './settings.ts'
import { openStage, type Stage } from './stage.ts'
import { measureTransfers } from './transfers.ts'

const parts: Record<string, (stage: Stage, settings: Settings) => Promise<Findings>> = {
  transfers: measureTransfers,
  edge: measureEdge,
  lists: measureLists,
  neighbours: measureNeighbours,
  memory: measureMemory,
}

const flags = {
  json: { value: 'FILE', help: 'write all measurements to this file, too', parse: anyText },
  only: {
    value: 'PART,…',
    help: `measure only these parts: ${listOf(Object.keys(parts))}`,
    choices: Object.keys(parts),
    parse: parseParts,
  },
  rounds: { value: 'N', help: 'number of measured rounds of each contender (default: 3)', parse: parseRounds },
  directory: {
    value: 'DIR',
    help: 'where to keep the databases: choose the disk to measure',
    default: tmpdir(),
    parse: anyText,
  },
  quick: { help: 'check within a minute that everything works; the figures mean nothing' },
} as const

async function measure({ json, only, rounds, directory, quick }: Values<typeof flags>): Promise<void> {
  const settings = { ...(quick ? quickSettings : fullSettings), ...(rounds && { rounds }) }

  // Rather now than after ten minutes.
  if (json) await writeFile(json, '')
  const say = sayWithin('bench')
  say('starting PostgreSQL and Redis')
  const stage = await openStage(directory)
  try {
    const machine = await describeMachine(stage)
    const findings: Findings[] = []
    for (const name of only ?? Object.keys(parts)) findings.push(await parts[name]!(stage, settings))
    const report = reportOf(machine, findings)
    if (json) await writeFile(json, `${JSON.stringify(report, null, 2)}\n`)
    say('done')
    console.log(textOf(report, findings))
  } finally {
    await stage.stop()
  }
}

function parseParts(text: string): string[] {
  const names = text.split(',')
  const stray = names.find(name => !Object.hasOwn(parts, name))
  if (stray !== undefined) throw new Error(`must be of ${listOf(Object.keys(parts))}`)
  return names
}

function parseRounds(text: string): number {
  if (!/^[1-9]\d?$/.test(text)) throw new Error('must be a whole number from 1 to 99')
  return Number(text)
}

await runProgram(
  createCommand({
    name: 'npm run bench --',
    help: 'measure the service against other ways to do the same, in about ten minutes',
    flags,
    examples: ['', '--only transfers,lists --json results.json', '--quick'],
    notes: `It starts its own PostgreSQL, with fsync and synchronous_commit on, its own Redis, and whatever it compares with.
Run nothing else on the machine meanwhile. docs/performance.md explains the figures.`,
    run: measure,
  }),
  process.argv.slice(2),
  error => error,
)
