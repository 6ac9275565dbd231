/** `npm run bench` compares the service with other ways to do the same work on the same machine: docs/performance.md. */
import { mkdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { anyText, type Values } from '../../cli/command-line/flags.ts'
import { createCommand, runProgram } from '../../cli/command-line/program.ts'
import { listOf } from '../../cli/command-line/sentence.ts'
import { sayWithin } from '../../cli/processes/say.ts'
import { measureCommands } from './commands.ts'
import { type Findings, reportOf, textOf } from './measure/report.ts'
import { fullSettings, quickSettings, type Settings } from './measure/settings.ts'
import { measureConnections } from './parts/connections.ts'
import { measureEdge } from './parts/edge.ts'
import { measureEvents } from './parts/events.ts'
import { measureExport } from './parts/export.ts'
import { measureLists } from './parts/lists.ts'
import { measureMemory } from './parts/memory.ts'
import { measureNeighbours } from './parts/neighbours.ts'
import { measureOverload } from './parts/overload.ts'
import { measurePlaces } from './parts/places.ts'
import { measurePosting } from './parts/posting.ts'
import { measureReads } from './parts/reads.ts'
import { measureStorage } from './parts/storage.ts'
import { measureTransfers } from './parts/transfers.ts'
import { describeMachine } from './testbed/machine.ts'
import { startTestbed, type Testbed } from './testbed/testbed.ts'

const parts: Record<string, (testbed: Testbed, settings: Settings) => Promise<Findings>> = {
  connections: measureConnections,
  reads: measureReads,
  transfers: measureTransfers,
  posting: measurePosting,
  places: measurePlaces,
  commands: measureCommands,
  edge: measureEdge,
  lists: measureLists,
  events: measureEvents,
  export: measureExport,
  neighbours: measureNeighbours,
  overload: measureOverload,
  memory: measureMemory,
}

/** They run only by name: they take hours, or much of the disk. */
const partsByName: typeof parts = { storage: measureStorage }
const allParts = { ...parts, ...partsByName }

const flags = {
  json: { value: 'FILE', help: 'also write all measurements to this file', parse: anyText },
  only: {
    value: 'PART,…',
    help: `measure only these parts: ${listOf(Object.keys(allParts))} (default: all but ${listOf(Object.keys(partsByName))})`,
    choices: Object.keys(allParts),
    parse: parseParts,
  },
  rounds: {
    value: 'N',
    help: `measure each contender in N rounds (default: ${fullSettings.rounds})`,
    parse: parseRounds,
  },
  transfers: {
    value: 'N',
    help: `transfers that the part storage posts (default: ${fullSettings.storageTransfers})`,
    parse: parseTransfers,
  },
  directory: {
    value: 'DIR',
    help: 'directory for the databases, on the disk that you want to measure',
    default: tmpdir(),
    parse: anyText,
  },
  charts: { value: 'DIR', help: 'also draw charts into this directory', parse: anyText },
  pgledger: {
    value: 'DIR',
    help: 'also compare with pgledger, whose sources you have in this directory (part connections)',
    parse: anyText,
  },
  pgbouncer: {
    value: 'PROGRAM',
    help: 'also measure the service behind this PgBouncer, 1.21 or newer (part connections)',
    parse: anyText,
  },
  quick: { help: 'only check that everything works; the figures mean nothing' },
} as const

async function measure({
  json,
  only,
  rounds,
  transfers,
  directory,
  charts,
  pgledger,
  pgbouncer,
  quick,
}: Values<typeof flags>): Promise<void> {
  const settings = {
    ...(quick ? quickSettings : fullSettings),
    ...(rounds && { rounds }),
    ...(transfers && { storageTransfers: transfers }),
    ...(pgledger && { pgledger }),
    ...(pgbouncer && { pgbouncer }),
  }

  // Fails now, not after ten minutes, if the file cannot be written.
  if (json) await writeFile(json, '')
  if (charts) await mkdir(charts, { recursive: true })
  const say = sayWithin('bench')
  say('starting PostgreSQL and Redis')
  const testbed = await startTestbed(directory)
  try {
    const machine = await describeMachine(testbed)
    const findings: Findings[] = []
    const failures: Error[] = []
    // The figures of the other parts are kept.
    for (const name of only ?? Object.keys(parts))
      await allParts[name]!(testbed, settings).then(
        found => findings.push(found),
        error => failures.push(new Error(`The part ${name} failed.`, { cause: error })),
      )
    if (findings.length === 0) throw failures[0]
    const report = reportOf(machine, findings)
    if (json) await writeFile(json, `${JSON.stringify(report, null, 2)}\n`)
    if (charts)
      for (const [name, svg] of findings.flatMap(({ charts = {} }) => Object.entries(charts)))
        await writeFile(join(charts, name), svg)
    say('done')
    console.log(textOf(report, findings))
    if (failures.length > 0) throw new AggregateError(failures, `${failures.length} parts failed.`)
  } finally {
    await testbed.stop()
  }
}

function parseParts(text: string): string[] {
  const names = text.split(',')
  const unknown = names.find(name => !Object.hasOwn(allParts, name))
  if (unknown !== undefined) throw new Error(`must be a list of ${listOf(Object.keys(allParts))}, separated by commas`)
  return names
}

function parseRounds(text: string): number {
  if (!/^[1-9]\d?$/.test(text)) throw new Error('must be a whole number from 1 to 99')
  return Number(text)
}

function parseTransfers(text: string): number {
  if (!/^[1-9]\d{2,9}$/.test(text)) throw new Error('must be a whole number from 100 on')
  return Number(text)
}

await runProgram(
  createCommand({
    name: 'npm run bench --',
    help: 'compare the service with other ways to do the same work, in about 30 minutes',
    flags,
    examples: ['', '--only posting', '--only transfers,lists --json results.json', '--quick'],
    notes: `The benchmark starts its own PostgreSQL (with fsync and synchronous_commit on), Redis, core, gateway, and the programs
that it compares them with. Run nothing else on the machine meanwhile. Each figure is the median of the rounds, with the
lowest and the highest. docs/performance.md explains the figures.`,
    run: measure,
  }),
  process.argv.slice(2),
  error => error,
)
