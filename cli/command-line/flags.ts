/** Flags as data, with typed values. Commander parses them; this file adds the checks that Commander has no setting for. */
import { type Command, Option } from 'commander'
import { asSentence, listOf } from './sentence.ts'

/** A flag with a value. */
export type ValueFlag<Value = unknown> = {
  /** Placeholder of the value in help texts. */
  value: string
  help: string
  required?: boolean
  /** Parsed if the flag is not given, and shown in help texts. */
  default?: string
  /** Values that shell completion offers. */
  choices?: readonly string[]
  /** Throws an Error whose message continues the flag's name: "must be …". */
  parse: (text: string) => Value
}
/** A flag without a value. */
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

/** An invalid command line. The message is one sentence that says how to correct it. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** Accepts any text. */
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
 * @param subject the name of the command, for the error
 * @throws UsageError that names every missing required flag
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

/** Wrapped in an object, because Commander treats null as a missing value. */
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
    // In "--name --json", --json is another flag. In "--name=--json", it is the value.
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
