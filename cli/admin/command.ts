import type { CoreClient } from '@workspace-wallet/core-client'
import type { Flags, Values } from '../command-line/flags.ts'
import type { Progress } from './progress.ts'

/** What commands are about, in the order of the help text. */
export const nouns = {
  workspace: 'Workspaces',
  member: 'Members of a workspace',
  key: 'API keys',
  wallet: 'Wallets',
  ledger: 'The ledger',
  audit: 'The audit log',
  kek: 'Key-encryption keys',
} as const

/** One administrative command, as data: help, parsing, execution and print all come from it. */
type Definition<F extends Flags, Result extends object> = {
  noun: keyof typeof nouns
  verb: string
  /** One line, for the overview. */
  help: string
  flags: F
  /** What follows the command's name in examples of its use. */
  examples: readonly [string, ...string[]]
  /** What it returns is what `--json` prints. */
  run: (core: CoreClient, values: Values<F>, progress: Progress) => Promise<Result>
  /** The same for people. */
  print: (result: Result) => string
  /** A sentence when the result is bad news: the command then fails, although it did its work. */
  complaint?: (result: Result) => string | undefined
}

type Outcome = { result: object; text: string; complaint: string | undefined }

export type Command = Pick<Definition<Flags, object>, 'noun' | 'verb' | 'help' | 'flags' | 'examples'> & {
  execute: (core: CoreClient, values: Values<Flags>, progress: Progress) => Promise<Outcome>
}

/** Checks a definition against its own flags, then forgets their types: a table holds commands of all kinds. */
export function command<const F extends Flags, Result extends object>({
  run,
  print,
  complaint,
  ...rest
}: Definition<F, Result>): Command {
  return {
    ...rest,
    async execute(core, values, progress) {
      const result = await run(core, values as Values<F>, progress)
      return { result, text: print(result), complaint: complaint?.(result) }
    },
  }
}
