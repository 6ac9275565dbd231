/** `npm run admin -- NOUN VERB …` operates a running service through its typed client. What it can do: admin/commands.ts. */
import { createCoreClient } from '@workspace-wallet/core/client'
import type { Command } from './admin/command.ts'
import { commands } from './admin/commands.ts'
import { findCore } from './admin/connection.ts'
import {
  commonFlags,
  type Flags,
  listOf,
  readFlags,
  splitArguments,
  UsageError,
  unknownFlag,
  type Values,
} from './admin/flags.ts'
import { commandHelp, overview } from './admin/help.ts'
import { nearest } from './admin/nearest.ts'
import { Progress } from './admin/progress.ts'
import { sentenceOf } from './admin/sentences.ts'

const exitCodes = { failed: 1, misused: 2 }
const flagsOfAll: Flags = Object.assign({}, commonFlags, ...commands.map(({ flags }) => flags))

async function main(args: string[]): Promise<void> {
  const { words, given } = splitArguments(args[0] === 'help' ? [...args.slice(1), '--help'] : args, flagsOfAll)
  const isHelpWanted = args.length <= 1 && words.length === args.length && words.length < 2
  if (isHelpWanted || given.some(({ name }) => name === 'help')) return console.log(helpFor(words))

  const stray = given.find(({ name }) => !Object.hasOwn(flagsOfAll, name))
  const command = stray ? commands.find(each => isNamed(each, words)) : requireCommand(words)
  if (!command) throw unknownFlag('npm run admin', stray!.typed, flagsOfAll)
  const values = readFlags(nameOf(command), { ...command.flags, ...commonFlags }, given)
  if (words.length > 2)
    throw new UsageError(`"${words[2]}" belongs to no flag: leave it out, or quote a text with spaces.`)
  await carryOut(command, values)
}

/** Help of the level that the words name: everything, a noun, or one command. */
function helpFor(words: string[]): string {
  const [noun] = words
  if (noun === undefined) return overview()
  requireNoun(noun)
  return words.length === 1 ? overview(noun) : commandHelp(requireCommand(words))
}

function requireNoun(noun: string | undefined): void {
  const nouns = [...new Set(commands.map(command => command.noun))]
  if (noun === undefined) throw new UsageError(`A noun and a verb are missing: the nouns are ${listOf(nouns)}.`)
  if (!nouns.includes(noun)) throw unknownWord(`There is no "${noun}"`, noun, nouns)
}

function requireCommand(words: string[]): Command {
  const [noun, verb] = words
  requireNoun(noun)
  const verbs = commands.filter(command => command.noun === noun).map(command => command.verb)
  if (verb === undefined) throw new UsageError(`A verb is missing: ${noun} has ${listOf(verbs)}.`)
  const command = commands.find(each => isNamed(each, words))
  if (!command) throw unknownWord(`There is no "${verb}" of a ${noun}`, verb, verbs)
  return command
}

function unknownWord(fault: string, word: string, words: string[]): UsageError {
  const match = nearest(word, words)
  return new UsageError(`${fault}: ${match ? `did you mean ${match}?` : `there are ${listOf(words)}.`}`)
}

function isNamed({ noun, verb }: Command, words: string[]): boolean {
  return noun === words[0] && verb === words[1]
}

function nameOf({ noun, verb }: Command): string {
  return `${noun} ${verb}`
}

async function carryOut(command: Command, values: Values<Flags>): Promise<void> {
  const address = await findCore(process.env)
  const core = createCoreClient({ url: address.urls, token: address.token })
  const progress = new Progress(process.stderr)
  try {
    const { result, text, complaint } = await command.execute(core, values, progress)
    progress.clear()
    console.log(values.json ? JSON.stringify(result) : text)
    if (complaint) fail(complaint, exitCodes.failed)
  } catch (error) {
    progress.clear()
    fail(sentenceOf(error, address), exitCodes.failed)
  } finally {
    await core.close()
  }
}

/** One sentence is one line, whatever was quoted in it. */
function fail(sentence: string, exitCode: number): void {
  console.error(sentence.replaceAll(/\s+/g, ' '))
  process.exitCode = exitCode
}

// Whoever reads our output may have read enough.
process.stdout.on('error', () => process.exit())

try {
  await main(process.argv.slice(2))
} catch (error) {
  fail((error as Error).message, error instanceof UsageError ? exitCodes.misused : exitCodes.failed)
}
