import type { Command } from './command.ts'
import { commands } from './commands.ts'
import { alignedLines, commonFlags, flagLines } from './flags.ts'

const program = 'npm run admin --'

const surroundings = `It speaks to the core that npm start runs, which it finds in DATA_DIR (.data). CORE_URL and CORE_TOKEN, a service token
of role admin, name another one. For programs: npm run --silent admin -- NOUN VERB … --json keeps npm's own lines out.
A failure exits 1, a command line that cannot be followed exits 2; both say why in one sentence on standard error.`

/** All nouns, or the verbs of one. */
export function overview(noun?: string): string {
  const listed = commands.filter(command => noun === undefined || command.noun === noun)
  const lines = alignedLines(listed.map(command => ({ left: `${command.noun} ${command.verb}`, right: command.help })))
  const firsts = noun === undefined ? firstOfEachNoun() : listed
  return `${program} ${noun ?? 'NOUN'} VERB [flags] operates a running wallet service.

${lines.join('\n')}

Every one of them takes --json (${commonFlags.json.help}) and --help.

${surroundings}

Examples:
${firsts.flatMap(command => exampleLines(command).slice(0, 1)).join('\n')}`
}

/** One command: its flags and examples. */
export function commandHelp(command: Command): string {
  return `${program} ${command.noun} ${command.verb} [flags]: ${command.help}.

${flagLines({ ...command.flags, ...commonFlags }).join('\n')}

Examples:
${exampleLines(command).join('\n')}`
}

function firstOfEachNoun(): Command[] {
  return commands.filter((command, at) => commands.findIndex(({ noun }) => noun === command.noun) === at)
}

function exampleLines({ noun, verb, examples }: Command): string[] {
  return examples.map(example => `  ${`${program} ${noun} ${verb} ${example}`.trimEnd()}`)
}
