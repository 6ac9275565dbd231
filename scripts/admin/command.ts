import type { CoreClient } from '@workspace-wallet/core/client'
import type { Flags, Values } from './flags.ts'
import type { Progress } from './progress.ts'

/** One administrative command, as data: help, parsing, execution and print all come from it. */
type Definition<F extends Flags, Result extends object> = {
  noun: string
  verb: string
  /** One line, for the overview. */
  help: string
  flags: F
  /** What stands behind the command in an example of its use. */
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
