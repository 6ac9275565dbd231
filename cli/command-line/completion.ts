/** Shell completion: the script that a shell loads, and the candidates that the script requests on every TAB. */
import { Argument, type Command } from 'commander'
import { createCommand } from './program.ts'

/**
 * Adds `completion SHELL`, which prints the script, and the hidden command `complete`, which the script runs.
 *
 * @param executable the name of the program on the PATH
 */
export function addCompletion(program: Command, executable: string): void {
  const scripts = scriptsFor(executable)
  const completion = createCommand({
    name: 'completion',
    help: 'print a script that completes commands, options and values in your shell',
    flags: {},
    examples: Object.keys(scripts),
    notes: `The script completes the command ${executable}. Install the command with npm link, then load the script in every
new shell:

  bash  echo 'eval "$(${executable} completion bash)"' >> ~/.bashrc
  zsh   echo 'eval "$(${executable} completion zsh)"' >> ~/.zshrc   (below the line that runs compinit)
  fish  ${executable} completion fish > ~/.config/fish/completions/${executable}.fish`,
    run: async (_, [shell]) => console.log(scripts[shell!]),
  })
  completion.addArgument(new Argument('<SHELL>', 'the shell').choices(Object.keys(scripts)))
  const complete = createCommand({
    name: 'complete',
    help: 'print the candidates for the last word of a command line',
    flags: {},
    examples: ['-- wallet cr'],
    run: async (_, words) => {
      for (const { value, help } of candidatesFor(program, words)) console.log(`${value}\t${help}`)
    },
  })
  complete.argument('[words...]')
  program.addCommand(completion.helpGroup('Shell completion:')).addCommand(complete, { hidden: true })
}

type Candidate = { value: string; help: string }

/** The commands, options and values that begin with the last word. */
function candidatesFor(program: Command, words: string[]): Candidate[] {
  const word = words.at(-1) ?? ''
  const command = words
    .slice(0, -1)
    .reduce((parent, name) => parent.commands.find(each => each.name() === name) ?? parent, program)
  const helper = command.createHelp()
  const options = helper.visibleOptions(command)
  const [flag, prefix] = word.includes('=') ? [word.split('=')[0], `${word.split('=')[0]}=`] : [words.at(-2), '']
  const option = options.find(({ long, required }) => required && long === flag)
  const candidates = option
    ? listValues(option.argChoices, word.slice(prefix.length)).map(value => ({ value: prefix + value, help: '' }))
    : [
        ...helper.visibleCommands(command).map(each => ({ value: each.name(), help: each.summary() })),
        ...command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices.map(value => ({ value, help: '' }))),
        ...(word.startsWith('-') ? options.map(({ long, description }) => ({ value: long!, help: description })) : []),
      ]
  return candidates.filter(({ value }) => value.startsWith(word))
}

/** The choices. After a comma, the typed list with each choice that it does not contain yet. */
function listValues(choices: readonly string[] = [], typed: string): string[] {
  const list = typed.split(',').slice(0, -1)
  return choices.filter(each => !list.includes(each)).map(each => [...list, each].join(','))
}

function scriptsFor(executable: string): Record<string, string> {
  const name = `_${executable.replaceAll('-', '_')}`
  return {
    bash: `${name}() {
  local line=\${COMP_LINE:0:COMP_POINT} words word value prefix
  read -ra words <<< "$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  COMPREPLY=()
  while IFS=$'\\t' read -r value _; do
    COMPREPLY+=("$value")
  done < <(${executable} complete -- "\${words[@]:1}" 2> /dev/null)
  # bash replaces only what follows the last of COMP_WORDBREAKS, such as the colon of wallet:read.
  word=\${words[@]: -1}
  prefix=\${word%"\${word##*["$COMP_WORDBREAKS"]}"}
  COMPREPLY=("\${COMPREPLY[@]#"$prefix"}")
}
complete -o default -F ${name} ${executable}`,
    zsh: `#compdef ${executable}
${name}() {
  local -a offers
  offers=("\${(@f)$(${executable} complete -- "\${(@Q)words[2,CURRENT]}" 2> /dev/null)}")
  # _describe expects VALUE:HELP, and colons in them escaped.
  offers=("\${(@)offers//:/\\\\:}")
  offers=("\${(@)offers//$'\\t'/:}")
  if [[ -n $offers[1] ]]; then _describe ${executable} offers; else _files; fi
}
compdef ${name} ${executable}`,
    fish: `complete --command ${executable} --no-files --arguments '(${executable} complete -- (commandline -opc)[2..-1] (commandline -ct) 2> /dev/null)'`,
  }
}
