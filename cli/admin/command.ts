import type { CoreClient } from '@workspace-wallet/core-client'
import type { Flags, Values } from '../command-line/flags.ts'
import { printable } from '../command-line/printable.ts'
import type { Progress } from './progress.ts'

/** The nouns that commands begin with, in the order of the help text. */
export const nouns = {
  workspace: 'Workspaces',
  member: 'Members of a workspace',
  key: 'API keys',
  wallet: 'Wallets',
  statement: 'Statements of wallets',
  transfer: 'Transfers',
  funding: 'Deposits and withdrawals',
  receipt: 'Receipts of transfers',
  hold: 'Holds',
  limit: 'Spending limits',
  ledger: 'The ledger',
  event: 'The event log',
  webhook: 'Webhooks',
  search: 'Search',
  audit: 'The audit log',
  refusal: 'Refused calls',
  operator: 'Operators',
  session: 'The token of this command',
  system: 'The service',
  kek: 'Key-encryption keys',
} as const

type Common<F extends Flags> = {
  noun: keyof typeof nouns
  verb: string
  /** One line, for the overview. */
  help: string
  flags: F
  /** The arguments after the command's name, in examples. */
  examples: readonly [string, ...string[]]
}

/** One administrative command as data: its help, flags, execution and output. */
type Definition<F extends Flags, Result extends object> = Common<F> & {
  /** Returns what `--json` prints. */
  run: (core: CoreClient, values: Values<F>, progress: Progress) => Promise<Result>
  /** The result as text for people. */
  print: (result: Result) => string
  /** One sentence if the command ran but must exit with 1, for example because a verification found violations. */
  failure?: (result: Result) => string | undefined
}

/** A command with any number of results, which it prints one by one. `--json` prints each as an object on its own line. */
type StreamDefinition<F extends Flags, Result extends object> = Common<F> & {
  /** The first line for people. */
  heading: string
  /** @param signal aborted when the user interrupts the command, which then ends without an error */
  run: (core: CoreClient, values: Values<F>, signal: AbortSignal) => AsyncIterable<Result>
  /** One result as a line for people. */
  print: (result: Result) => string
}

/** What a command runs with. */
export type Session = {
  core: CoreClient
  progress: Progress
  signal: AbortSignal
  /** Prints a result: the object with `--json`, otherwise the text. */
  show: (result: object, text: string) => void
  /** Prints a line that is not a result. Prints nothing with `--json`. */
  showHeading: (text: string) => void
}

export type Command = Common<Flags> & {
  /** Whether it prints any number of results. */
  isStream: boolean
  /** Resolves with one sentence if the command ran but must exit with 1. */
  execute: (session: Session, values: Values<Flags>) => Promise<string | undefined>
}

/** Type-checks a definition against its own flags, and erases their types, so that one table can hold all commands. */
export function command<const F extends Flags, Result extends object>({
  run,
  print,
  failure,
  ...rest
}: Definition<F, Result>): Command {
  return {
    ...rest,
    isStream: false,
    async execute({ core, progress, show }, values) {
      const result = await run(core, values as Values<F>, progress)
      show(result, print(printable(result)))
      return failure?.(result)
    },
  }
}

/** Like `command`, for a command with any number of results. */
export function streamCommand<const F extends Flags, Result extends object>({
  heading,
  run,
  print,
  ...rest
}: StreamDefinition<F, Result>): Command {
  return {
    ...rest,
    isStream: true,
    async execute({ core, signal, show, showHeading }, values) {
      showHeading(heading)
      for await (const result of run(core, values as Values<F>, signal)) show(result, print(printable(result)))
      return undefined
    },
  }
}
