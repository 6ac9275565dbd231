/** Command lines as data: Commander's help, parsing, suggestions and completion come from a definition. */
import { Command, CommanderError } from 'commander'
import { correction } from './correction.ts'
import { addFlags, type Flags, readFlags, UsageError, type Values } from './flags.ts'
import { printable } from './printable.ts'
import { asSentence, capitalized } from './sentence.ts'

const exitCodes = { failed: 1, invalidUsage: 2 }
const helpWidth = 120

export type Definition<F extends Flags = Flags> = {
  name: string
  help: string
  /** Required words before the flags, each with its help text. */
  words?: Record<string, string>
  flags: F
  /** The arguments after the command's name, in examples. */
  examples: readonly string[]
  /** Paragraphs at the end of the help text. */
  notes?: string
  run: (values: Values<F>, words: string[]) => Promise<void>
}

export function createCommand<const F extends Flags>(definition: Definition<F>): Command {
  const { name, help, words = {}, flags, examples, notes, run } = definition
  const command = newCommand(name, help)
  for (const [word, wordHelp] of Object.entries(words)) command.argument(`<${word}>`, wordHelp)
  addFlags(command, flags)
  command.addHelpText('after', () => {
    const lines = examples.map(example => `  ${commandLineOf(command)} ${example}`.replace(/( --)? $/, ''))
    return ['', 'Examples:', ...lines, ...(notes ? ['', notes] : [])].join('\n')
  })
  return command.action(() => run(readFlags(command, nameOf(command), flags), command.args))
}

/** A command that only contains other commands. */
export function createGroup(name: string, help: string, commands: Command[]): Command {
  const group = newCommand(name, help).usage('COMMAND [options]')
  for (const each of commands) group.addCommand(each)
  return group
}

/**
 * Runs a command line. An invalid one exits with 2, a command that fails with 1; both print one sentence to standard error.
 *
 * @param describe what to print if the command fails (default: the error's message in one line)
 */
export async function runProgram(
  program: Command,
  args: string[],
  describe: (error: Error) => unknown = inOneLine,
): Promise<void> {
  try {
    await program.parseAsync(withHelp(program, args), { from: 'user' })
  } catch (error) {
    // The help was printed, which is an error if words are missing.
    if (error instanceof CommanderError) {
      if (args.length === 0 && program.registeredArguments.length > 0) process.exitCode = exitCodes.invalidUsage
      return
    }
    const isInvalidUsage = error instanceof UsageError
    console.error(isInvalidUsage ? inOneLine(error) : describe(error as Error))
    process.exitCode = isInvalidUsage ? exitCodes.invalidUsage : exitCodes.failed
  }
}

function inOneLine({ message }: Error): string {
  return printable(message.replaceAll(/\s+/g, ' '))
}

function newCommand(name: string, help: string): Command {
  const command = new Command(name)
  return command
    .description(asSentence(capitalized(help)))
    .summary(help)
    .helpOption('-h, --help', 'print this help')
    .helpCommand(false)
    .configureHelp({
      helpWidth: process.stdout.columns ?? helpWidth,
      subcommandTerm: each => [each.name(), ...each.registeredArguments.map(word => `<${word.name()}>`)].join(' '),
      optionDescription: ({ description, defaultValueDescription: value }) =>
        value === undefined ? description : `${description} (default: ${value})`,
    })
    .configureOutput({ outputError: () => {} })
    .exitOverride(error => {
      throw error.exitCode === 0 ? error : new UsageError(correction(command, error))
    })
}

/** Adds --help to a command line that begins with `help`, or that ends before a command. */
function withHelp(program: Command, args: string[]): string[] {
  if (args[0] === 'help') return [...args.slice(1), '--help']
  const reached = args.reduce<Command | undefined>(
    (command, word) => command?.commands.find(each => each.name() === word),
    program,
  )
  const isGroup = (reached?.commands.length ?? 0) > 0
  return isGroup || (args.length === 0 && program.registeredArguments.length > 0) ? [...args, '--help'] : args
}

/** The name of a command in sentences, without that of the program: "key create". */
function nameOf(command: Command): string {
  const { parent } = command
  return parent?.parent ? `${nameOf(parent)} ${command.name()}` : command.name()
}

/** A command as it is typed: "npm run admin -- key create". */
function commandLineOf(command: Command): string {
  return command.parent ? `${commandLineOf(command.parent)} ${command.name()}` : command.name()
}
