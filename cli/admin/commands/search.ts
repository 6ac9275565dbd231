import type { FindResult } from '@workspace-wallet/contract'
import { anyText } from '../../command-line/flags.ts'
import { command } from '../command.ts'
import { table } from '../table.ts'

export const searchCommands = [
  command({
    noun: 'search',
    verb: 'find',
    help: 'find what an ID of any kind or its UUID, a bizId, a reference, a request ID, a user ID or a name belongs to',
    flags: { text: { value: 'TEXT', help: 'the whole ID or name', required: true, parse: anyText } },
    examples: ['--text trf_…', '--text invoice-2026-0042'],
    run: (core, { text }) => core.search.find.query({ text }),
    print,
  }),
]

function print({ found, searched }: FindResult): string {
  const rows = found.map(each => [each.kind, each.by, each.id, each.workspaceId ?? '', each.summary])
  const shown = rows.length > 0 ? table(['KIND', 'BY', 'ID', 'WORKSPACE', 'SUMMARY'], rows) : 'Nothing found.'
  const incomplete = searched.filter(({ isComplete }) => !isComplete).map(({ kind, by }) => `${kind} by ${by}`)
  return incomplete.length === 0 ? shown : `${shown}\n\nNot complete: ${incomplete.join(', ')}.`
}
