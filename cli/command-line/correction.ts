import type { Command, CommanderError } from 'commander'
import { asSentence, capitalized, listOf } from './sentence.ts'

/** Commander's message as one line, with how to correct the command line where Commander suggests nothing. */
export function correction(command: Command, { code, message }: CommanderError): string {
  if (code === 'commander.optionMissingArgument') {
    const { long, description } = command.options.find(({ flags }) => message.includes(`'${flags}'`))!
    return `${long} needs a value: ${asSentence(description)}`
  }
  const [text, suggestion] = message.replace(/^error: /, '').split('\n')
  const fault = capitalized(text!)
  const hint = suggestion?.replace(/^\(D(.*)\)$/, 'd$1') ?? remedy(command, code, message)
  if (hint === undefined) return asSentence(fault)
  return asSentence(fault.endsWith('.') ? `${fault} ${capitalized(hint)}` : `${fault}: ${hint}`)
}

function remedy(command: Command, code: string, message: string): string | undefined {
  if (code === 'commander.unknownOption') return remedyOfOption(command, message)
  if (code === 'commander.unknownCommand') return `the commands are ${namesOf(command)}`
  if (code === 'commander.excessArguments') return 'leave out the extra words, or quote a text with spaces'
  if (code === 'commander.missingArgument')
    return command.registeredArguments.find(each => message.includes(`'${each.name()}'`))?.description
}

function remedyOfOption(command: Command, message: string): string {
  const options = command
    .createHelp()
    .visibleOptions(command)
    .map(({ long }) => long ?? '')
  const given = options.find(each => message.includes(`'${each}=`))
  if (given) return `${given} takes no value`
  return command.commands.length > 0
    ? `put a command before it (${namesOf(command)})`
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
