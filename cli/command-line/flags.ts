/** Flags as data, and their values as types. Commander parses them; this file adds what it has no setting for. */
import { type Command, Option } from 'commander'
import { asSentence, listOf } from './sentence.ts'

/** A flag with a value. */
export type ValueFlag<Value = unknown> = {
  /** Stands for the value in help texts. */
  value: string
  help: string
  required?: boolean
  /** Parsed when the flag is not given, and shown in help texts. */
  default?: string
  /** Values that shell completion offers. */
  choices?: readonly string[]
  /** Throws what is wrong with the text as the end of a sentence: "must be …". */
  parse: (text: string) => Value
}
/** A flag that is given or not. */
export type Switch = { help: string }
export type Flag = ValueFlag | Switch
export type Flags = Record<string, Flag>

export type Values<F extends Flags> = {
  [Name in keyof F]: F[Name] extends ValueFlag<infer Value>
    ? F[Name] extends { required: true } | { default: string }
      ? Value
      : Value | undefined
    : boolean
}

/** A command line that cannot be carried out. Its message is one sentence that says how to correct it. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** Any text, as it was typed. */
export const anyText = (text: string): string => text

export function addFlags(command: Command, flags: Flags): void {
  for (const [name, flag] of Object.entries(flags)) {
    let isGiven = false
    command.addOption(takesValue(flag) ? valueOption(command, name, flag) : new Option(`--${name}`, flag.help))
    command.on(`option:${name}`, () => {
      if (isGiven) throw new UsageError(`--${name} is given twice: give it once.`)
      isGiven = true
    })
  }
}

/**
 * @param subject what needs the flags, in sentences
 * @throws UsageError that names every required flag that is missing
 */
export function readFlags<F extends Flags>(command: Command, subject: string, flags: F): Values<F> {
  const given = new Map(
    command.options
      .map(option => [option.name(), command.getOptionValue(option.attributeName()) as unknown] as const)
      .filter(([, value]) => value !== undefined),
  )
  const missing = Object.entries(flags).flatMap(([name, flag]) =>
    takesValue(flag) && flag.required && !given.has(name) ? [`--${name} ${flag.value} (${flag.help})`] : [],
  )
  if (missing.length > 0) throw new UsageError(`${subject} needs ${listOf(missing)}.`)
  return Object.fromEntries(
    Object.entries(flags).map(([name, flag]) => [
      name,
      takesValue(flag) ? (given.get(name) as Parsed | undefined)?.value : given.has(name),
    ]),
  ) as Values<F>
}

/** In an object, since Commander takes null for a flag without a value. */
type Parsed = { value: unknown }

function takesValue(flag: Flag): flag is ValueFlag {
  return 'value' in flag
}

function valueOption(command: Command, name: string, flag: ValueFlag): Option {
  const option = new Option(`--${name} <${flag.value}>`, flag.help)
  if (flag.required) option.helpGroup('Required:')
  if (flag.choices) option.choices(flag.choices)
  if (flag.default !== undefined) option.default(readValue(name, flag, flag.default), flag.default)
  return option.argParser(text => {
    if (text === '--help' || text === '-h') command.help()
    // Of "--name --json" the second is a flag of its own. "--name=--json" is a value.
    if (text.startsWith('--') && !process.argv.includes(`--${name}=${text}`))
      throw new UsageError(`--${name} needs a value: ${flag.help}.`)
    return readValue(name, flag, text)
  })
}

function readValue(name: string, flag: ValueFlag, text: string): Parsed {
  try {
    return { value: flag.parse(text) }
  } catch (error) {
    throw new UsageError(`--${name} ${asSentence((error as Error).message)}`, { cause: error })
  }
}
