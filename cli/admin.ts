/** `npm run admin -- NOUN VERB …` operates a running service through core's typed client. admin/commands/all.ts lists the commands. */
import { createCoreClient } from '@workspace-wallet/core-client'
import { type Command as Group, Help } from 'commander'
import { type Command, nouns, type Session } from './admin/command.ts'
import { commands } from './admin/commands/all.ts'
import { findCore } from './admin/connection.ts'
import { Progress } from './admin/progress.ts'
import { sentenceOf } from './admin/sentences.ts'
import { addCompletion } from './command-line/completion.ts'
import { type Flags, UsageError, type Values } from './command-line/flags.ts'
import { createCommand, createGroup, runProgram } from './command-line/program.ts'

const notes = `Every command accepts --help, and --json, which prints one JSON object and nothing else; event tail prints one object on each
line. In scripts, use npm run --silent admin -- NOUN VERB … --json, which also suppresses npm's own output.

The commands call the core of npm start, which they find in DATA_DIR (default: .data in the checkout). To call another
core, set CORE_URL and CORE_TOKEN, a service token with the role admin.

The exit code is 1 if a command fails and 2 if the command line is invalid. Both print one sentence to standard error.

${examplesOf(Object.keys(nouns).flatMap(noun => commands.find(command => command.noun === noun) ?? []))}`

const groups = Object.entries(nouns).map(([noun, help]) => {
  const ofNoun = commands.filter(command => command.noun === noun)
  return createGroup(noun, help, ofNoun.map(createVerb))
    .description('')
    .helpGroup(`${help}:`)
    .addHelpText('after', `\n${examplesOf(ofNoun)}`)
})
const program = createGroup('npm run admin --', 'operate a running wallet service', groups).addHelpText(
  'after',
  `\n${notes}`,
)
program.configureHelp({ ...program.configureHelp(), formatHelp: overview })
addCompletion(program, 'wallet-admin')
// A reader such as head may close the pipe before everything is written.
process.stdout.on('error', () => process.exit())
await runProgram(program, process.argv.slice(2))

function createVerb(command: Command): Group {
  const { noun, verb, help, flags, examples, isStream } = command
  return createCommand({
    name: verb,
    help,
    flags: { ...flags, json: { help: `print one JSON object${isStream ? ' on each line' : ''} and nothing else` } },
    examples,
    run: values => execute(command, values),
  }).helpGroup(`${nouns[noun]}:`)
}

/** The first example of each command. */
function examplesOf(shown: readonly Command[]): string {
  const lines = shown.map(({ noun, verb, examples }) => `  npm run admin -- ${noun} ${verb} ${examples[0]}`.trimEnd())
  return ['Examples:', ...lines].join('\n')
}

async function execute(command: Command, { json, ...values }: Values<Flags>): Promise<void> {
  const address = await findCore(process.env)
  const core = createCoreClient({ url: address.urls, token: address.token })
  const progress = new Progress(process.stderr)
  const session: Session = {
    core,
    progress,
    signal: command.isStream ? interruption() : new AbortController().signal,
    show(result, text) {
      progress.clear()
      console.log(json ? escapeControls(JSON.stringify(result)) : text)
    },
    showHeading(text) {
      if (!json) console.log(text)
    },
  }
  try {
    const failure = await command
      .execute(session, values)
      .catch(error => {
        throw error instanceof UsageError ? error : new Error(sentenceOf(error, address), { cause: error })
      })
      .finally(() => progress.clear())
    if (failure) throw new Error(failure)
  } finally {
    await core.close()
  }
}

/** Escapes U+007F to U+009F, the control characters that `JSON.stringify` leaves as they are. */
function escapeControls(json: string): string {
  return json.replaceAll(/[\x7f-\x9f]/g, each => `\\u00${each.charCodeAt(0).toString(16)}`)
}

/** Aborted by SIGINT or SIGTERM, which then no longer end the process. */
function interruption(): AbortSignal {
  const interrupted = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => interrupted.abort())
  return interrupted.signal
}

/** Formats the help of the program with every command, not only the nouns. */
function overview(command: Group, helper: Help): string {
  const visible = helper.visibleCommands(command)
  helper.visibleCommands = () => visible.flatMap(each => (each.commands.length > 0 ? each.commands : each))
  const { subcommandTerm } = helper
  helper.subcommandTerm = each => (each.parent === command ? '' : `${each.parent!.name()} `) + subcommandTerm(each)
  return Help.prototype.formatHelp.call(helper, command, helper)
}
