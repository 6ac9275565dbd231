import { type Hold, holdRecord, holdStatuses, maxPageSize } from '@workspace-wallet/contract'
import { anyText } from '../../command-line/flags.ts'
import { command } from '../command.ts'
import { onWorkspace } from '../on-workspace.ts'
import { table } from '../table.ts'
import { oneOf, parseCount } from '../values.ts'
import { reason, wallet, workspace } from './id-flags.ts'

const parseStatus = oneOf('status', holdStatuses)

type HoldRecord = ReturnType<typeof holdRecord>

export const holdCommands = [
  command({
    noun: 'hold',
    verb: 'list',
    help: 'list the holds of a workspace or a wallet, newest first',
    flags: {
      workspace,
      wallet: { ...wallet, help: 'list only the holds of this wallet', required: false },
      status: {
        value: 'STATUS',
        help: `list only holds with this status: ${holdStatuses.join(', ')}`,
        choices: holdStatuses,
        parse: parseStatus,
      },
      limit: { value: 'COUNT', help: 'maximum number of holds', default: '50', parse: parseCount },
    },
    examples: ['--workspace wsp_… --status OPEN', '--workspace wsp_… --wallet wal_…'],
    async run(core, { workspace: workspaceId, wallet: walletId, status, limit }) {
      const size = Math.min(limit, maxPageSize)
      const holds = new Map<string, Hold>()
      let total: number
      for (let page = 0; ; page++) {
        const request = { ...onWorkspace(workspaceId), walletId, filter: { status }, page, size }
        const answer = await core.holds.list.query(request)
        // A hold moves to the next page when a new one is created.
        for (const hold of answer.content) holds.set(hold.holdId, hold)
        total = answer.page.totalElements
        if (holds.size >= limit || page + 1 >= answer.page.totalPages) break
      }
      return { holds: [...holds.values()].slice(0, limit).map(holdRecord), total }
    },
    print: ({ holds, total }) => (holds.length > 0 ? printHolds(holds, total) : 'No holds found.'),
  }),
  command({
    noun: 'hold',
    verb: 'release',
    help: 'end a hold: what remains of it is available in its wallet again; safe to repeat',
    flags: {
      workspace,
      hold: { value: 'ID', help: 'holdId or bizId of the hold', required: true, parse: anyText },
      reason,
    },
    examples: ['--workspace wsp_… --hold hld_…', '--workspace wsp_… --hold booking-17'],
    async run(core, { workspace: workspaceId, hold: holdId, reason }) {
      return holdRecord(await core.holds.release.mutate({ ...onWorkspace(workspaceId), holdId, reason }))
    },
    print: ({ holdId, walletId, status, amount, capturedAmount, currency }) =>
      `Hold ${holdId} is ${status}: of ${amount} ${currency}, ${capturedAmount} was captured, and the rest is available in wallet ${walletId} again.`,
  }),
]

function printHolds(holds: HoldRecord[], total: number): string {
  const rows = holds.map(each => [
    each.holdId,
    each.status,
    each.walletId,
    each.currency,
    each.amount,
    each.capturedAmount,
    each.remainingAmount,
    each.expiresAt,
    each.bizId,
  ])
  const headings = ['HOLD', 'STATUS', 'WALLET', 'CURRENCY', 'AMOUNT', 'CAPTURED', 'REMAINING', 'EXPIRES', 'BIZ ID']
  const rest = total > holds.length ? `\n\nThere are ${total} holds in all. To list more, add --limit ${total}.` : ''
  return `${table(headings, rows)}${rest}`
}
