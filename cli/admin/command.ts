import type { CoreClient } from '@workspace-wallet/core-client'
import type { Flags, Values } from '../command-line/flags.ts'
import type { Progress } from './progress.ts'

/** The nouns that commands begin with, in the order of the help text. */
export const nouns = {
  workspace: 'Workspaces',
  member: 'Members of a workspace',
  key: 'API keys',
  wallet: 'Wallets',
  ledger: 'The ledger',
  audit: 'The audit log',
  kek: 'Key-encryption keys',
} as const

/** One administrative command as data: its help, flags, execution and output. */
type Definition<F extends Flags, Result extends object> = {
  noun: keyof typeof nouns
  verb: string
  /** One line, for the overview. */
  help: string
  flags: F
  /** The arguments after the command's name, in examples. */
  examples: readonly [string, ...string[]]
  /** Returns what `--json` prints. */
  run: (core: CoreClient, values: Values<F>, progress: Progress) => Promise<Result>
  /** The result as text for people. */
  print: (result: Result) => string
  /** One sentence if the command ran but must exit with 1, for example because a verification found violations. */
  failure?: (result: Result) => string | undefined
}

type Outcome = { result: object; text: string; failure: string | undefined }

export type Command = Pick<Definition<Flags, object>, 'noun' | 'verb' | 'help' | 'flags' | 'examples'> & {
  execute: (core: CoreClient, values: Values<Flags>, progress: Progress) => Promise<Outcome>
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
    async execute(core, values, progress) {
      const result = await run(core, values as Values<F>, progress)
      return { result, text: print(result), failure: failure?.(result) }
    },
  }
}
