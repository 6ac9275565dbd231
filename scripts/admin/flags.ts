/** Command lines as data: one table of flags gives the parsing, the sentences about mistakes and the help texts. */
import { parseArgs } from 'node:util'
import { nearest } from './nearest.ts'

/** A flag with a value. `parse` throws what is wrong with the text as the end of a sentence: "must be …". */
export type ValueFlag<Value = unknown> = {
  /** What stands for the value in help texts. */
  value: string
  help: string
  required?: boolean
  parse: (text: string) => Value
}
/** A flag that is there or not. */
export type Switch = { help: string }
export type Flag = ValueFlag | Switch
export type Flags = Record<string, Flag>

export type Values<F extends Flags> = {
  [Name in keyof F]: F[Name] extends ValueFlag<infer Value>
    ? F[Name] extends { required: true }
      ? Value
      : Value | undefined
    : boolean
}

/** A command line that cannot be followed. Its message is one sentence that says how to mend it. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** What every command takes. */
export const commonFlags = {
  json: { help: 'print one JSON object and nothing else' },
  help: { help: 'print this' },
} satisfies Flags

/** A flag as it was typed. `text` is what stood behind it, if anything did. */
export type GivenFlag = { name: string; typed: string; text: string | undefined }

/** Splits a command line into words and flags. Which flags take a value has to be known; unknown ones take none. */
export function splitArguments(args: string[], flags: Flags): { words: string[]; given: GivenFlag[] } {
  const options = Object.fromEntries(
    Object.entries(flags).map(([name, flag]) => [name, { type: takesValue(flag) ? 'string' : 'boolean' } as const]),
  )
  const words: string[] = []
  const given: GivenFlag[] = []
  const { tokens } = parseArgs({
    args: args.map(arg => (arg === '-h' ? '--help' : arg)),
    options,
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  for (const token of tokens) {
    if (token.kind === 'positional') words.push(token.value)
    if (token.kind !== 'option') continue
    // Of "--name --json" the second is a flag of its own, and --name has no value.
    const next = !token.inlineValue && token.value?.startsWith('--') ? token.value : undefined
    given.push({ name: token.name, typed: token.rawName, text: next === undefined ? token.value : undefined })
    if (next !== undefined) given.push(...splitArguments([next], flags).given)
  }
  return { words, given }
}

/**
 * The values of the flags that were given.
 *
 * @param subject what is being called, as the sentences name it
 * @throws UsageError
 */
export function readFlags<F extends Flags>(subject: string, flags: F, given: GivenFlag[]): Values<F> {
  const values: Record<string, unknown> = {}
  for (const { name, typed, text } of given) {
    const flag = Object.hasOwn(flags, name) ? flags[name] : undefined
    if (!flag) throw unknownFlag(subject, typed, flags)
    if (Object.hasOwn(values, name)) throw new UsageError(`--${name} is given twice: give it once.`)
    values[name] = takesValue(flag) ? readValue(name, flag, text) : readSwitch(name, text)
  }
  const missing = Object.entries(flags).filter(
    ([name, flag]) => takesValue(flag) && flag.required && !Object.hasOwn(values, name),
  )
  if (missing.length > 0) throw new UsageError(`${subject} needs ${listOf(missing.map(describeFlag))}.`)
  for (const [name, flag] of Object.entries(flags))
    if (!Object.hasOwn(values, name)) values[name] = takesValue(flag) ? undefined : false
  return values as Values<F>
}

export function unknownFlag(subject: string, typed: string, flags: Flags): UsageError {
  const names = Object.keys(flags).map(name => `--${name}`)
  const match = nearest(typed, names)
  const remedy = match ? `did you mean ${match}?` : `it takes ${listOf(names)}.`
  return new UsageError(`${subject} has no flag ${typed}: ${remedy}`)
}

/** One line for each flag, required ones first. */
export function flagLines(flags: Flags): string[] {
  const isRequired = (flag: Flag) => takesValue(flag) && flag.required === true
  const rows = Object.entries(flags)
    .toSorted(([, a], [, b]) => Number(isRequired(b)) - Number(isRequired(a)))
    .map(([name, flag]) => ({
      left: takesValue(flag) ? `--${name} ${flag.value}` : `--${name}`,
      right: isRequired(flag) ? `${flag.help} (required)` : flag.help,
    }))
  return alignedLines(rows)
}

/** Two columns, indented. */
export function alignedLines(rows: { left: string; right: string }[]): string[] {
  const width = Math.max(...rows.map(({ left }) => left.length))
  return rows.map(({ left, right }) => `  ${left.padEnd(width)}  ${right}`)
}

/** "a, b and c" */
export function listOf(words: readonly string[]): string {
  return new Intl.ListFormat('en-GB').format(words)
}

/** Ends a text with a full stop, unless it ends as a sentence does. */
export function asSentence(text: string): string {
  return /[.?]$/.test(text) ? text : `${text}.`
}

function takesValue(flag: Flag): flag is ValueFlag {
  return 'value' in flag
}

function readValue(name: string, flag: ValueFlag, text: string | undefined): unknown {
  if (text === undefined) throw new UsageError(`--${name} needs a value: ${flag.help}.`)
  try {
    return flag.parse(text)
  } catch (error) {
    throw new UsageError(`--${name} ${asSentence((error as Error).message)}`, { cause: error })
  }
}

function readSwitch(name: string, text: string | undefined): true {
  if (text !== undefined) throw new UsageError(`--${name} takes no value: leave "=${text}" out.`)
  return true
}

function describeFlag([name, flag]: [string, Flag]): string {
  return takesValue(flag) ? `--${name} ${flag.value} (${flag.help})` : `--${name}`
}
