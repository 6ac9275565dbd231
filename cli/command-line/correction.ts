import type { Command, CommanderError } from 'commander'
import { asSentence, capitalized, listOf } from './sentence.ts'

/** Commander's message as one sentence. Says how to correct the command line where Commander suggests nothing. */
export function correction(command: Command, { code, message }: CommanderError): string {
  if (code === 'commander.optionMissingArgument') {
    const { long, description } = command.options.find(({ flags }) => message.includes(`'${flags}'`))!
    return `${long} needs a value: ${asSentence(description)}`
  }
  const [text, suggestion] = message.replace(/^error: /, '').split('\n')
  const problem = capitalized(text!)
  const hint = suggestion?.replace(/^\(D(.*)\)$/, 'd$1') ?? hintFor(command, code, message)
  if (hint === undefined) return asSentence(problem)
  return asSentence(problem.endsWith('.') ? `${problem} ${capitalized(hint)}` : `${problem}: ${hint}`)
}

function hintFor(command: Command, code: string, message: string): string | undefined {
  if (code === 'commander.unknownOption') return hintForOption(command, message)
  if (code === 'commander.unknownCommand') return `the commands are ${namesOf(command)}`
  if (code === 'commander.excessArguments') return 'remove the extra words, or quote a value that contains spaces'
  if (code === 'commander.missingArgument')
    return command.registeredArguments.find(each => message.includes(`'${each.name()}'`))?.description
}

function hintForOption(command: Command, message: string): string {
  const options = command
    .createHelp()
    .visibleOptions(command)
    .map(({ long }) => long ?? '')
  const option = options.find(each => message.includes(`'${each}=`))
  if (option) return `${option} takes no value`
  return command.commands.length > 0
    ? `options follow a command (${namesOf(command)})`
    : `the options are ${listOf(options)}`
}

function namesOf(command: Command): string {
  return listOf(
    command
      .createHelp()
      .visibleCommands(command)
      .map(each => each.name()),
  )
}
