/** `npm run bench` measures what docs/performance.md promises, against what others do on the same machine. */
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { flagLines, listOf, readFlags, splitArguments, UsageError } from '../scripts/admin/flags.ts'
import { sayWithin } from '../scripts/embedded/say.ts'
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
  json: { value: 'FILE', help: 'write everything that was measured to this file, too', parse: (text: string) => text },
  only: { value: 'PART,…', help: `measure these parts alone: ${listOf(Object.keys(parts))}`, parse: parseParts },
  rounds: { value: 'N', help: 'rounds that count, of every contender; 3 unless given', parse: parseRounds },
  directory: {
    value: 'DIR',
    help: 'where the databases are kept meanwhile: on the disk to measure; the temporary directory unless given',
    parse: (text: string) => text,
  },
  quick: { help: 'see that everything works, in a minute; the figures mean nothing' },
  help: { help: 'print this' },
} as const

const help = `npm run bench -- [flags] measures the service against other ways to do the same, in about ten minutes.

${flagLines(flags).join('\n')}

It starts its own PostgreSQL, with fsync and synchronous_commit on, its own Redis, and whatever it compares with.
Nothing else should run on the machine. docs/performance.md tells how to read the figures.`

async function main(args: string[]): Promise<void> {
  const { words, given } = splitArguments(args, flags)
  if (given.some(({ name }) => name === 'help')) return console.log(help)
  const { json, only, rounds, directory, quick } = readFlags('npm run bench', flags, given)
  if (words.length > 0) throw new UsageError(`"${words[0]}" belongs to no flag.`)
  const settings = { ...(quick ? quickSettings : fullSettings), ...(rounds && { rounds }) }

  // Rather now than after ten minutes.
  if (json) await writeFile(json, '')
  const say = sayWithin('bench')
  say('starting PostgreSQL and Redis')
  const stage = await openStage(directory ?? tmpdir())
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

try {
  await main(process.argv.slice(2))
} catch (error) {
  console.error(error instanceof UsageError ? error.message : error)
  process.exitCode = error instanceof UsageError ? 2 : 1
}
