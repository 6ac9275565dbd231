import { formatBalance, type LimitSubject, type SpendingLimit } from '@workspace-wallet/contract'
import { UsageError } from '../../command-line/flags.ts'
import { command } from '../command.ts'
import { moreSentence, pageFlags, readPages } from '../pages.ts'
import { table } from '../table.ts'
import { parseAmount, parseCurrency, parseId } from '../values.ts'
import { reason, wallet, workspace } from './id-flags.ts'

/** A limit belongs to a key or to a wallet: one of both. */
const subject = {
  key: { value: 'ak_…', help: 'limit what this API key spends', parse: parseId('apiKey') },
  wallet: { ...wallet, help: 'limit what is spent from this wallet', required: false },
} as const
const currency = { value: 'CODE', help: 'currency of the limit', required: true, parse: parseCurrency } as const

function subjectOf({ key, wallet }: { key?: string | undefined; wallet?: string | undefined }): LimitSubject {
  if ((key === undefined) === (wallet === undefined)) throw new UsageError('Set either --key or --wallet.')
  return key === undefined ? { walletId: wallet! } : { apiKey: key }
}

export const limitCommands = [
  command({
    noun: 'limit',
    verb: 'set',
    help: 'limit what an API key or a wallet may spend, for each transfer, each day (UTC) or both',
    flags: {
      workspace,
      ...subject,
      currency,
      'per-transfer': { value: 'AMOUNT', help: 'largest transfer and hold (default: unlimited)', parse: parseAmount },
      'per-day': { value: 'AMOUNT', help: 'largest sum of a day (default: unlimited)', parse: parseAmount },
      reason,
    },
    examples: [
      '--workspace wsp_… --key ak_… --currency USD --per-transfer 500.00 --per-day 2000.00',
      '--workspace wsp_… --wallet wal_… --currency EUR --per-day 10000.00',
    ],
    async run(core, { workspace: workspaceId, key, wallet, currency, reason, ...given }) {
      const { 'per-transfer': perTransfer, 'per-day': perDay } = given
      if (perTransfer === undefined && perDay === undefined)
        throw new UsageError('Set --per-transfer, --per-day or both. To remove a limit, use limit clear.')
      const bounds = { ...(perTransfer && { perTransfer }), ...(perDay && { perDay }) }
      return recordOf(
        await core.limits.set.mutate({ workspaceId, subject: subjectOf({ key, wallet }), currency, reason, ...bounds }),
      )
    },
    print: limit => `${limit.apiKey ?? limit.walletId} may spend ${sentenceOf(limit)} from now on.`,
  }),
  command({
    noun: 'limit',
    verb: 'list',
    help: 'list the limits of a workspace, and what was spent today',
    flags: { workspace, ...pageFlags },
    examples: ['--workspace wsp_…'],
    async run(core, { workspace: workspaceId, limit, after }) {
      const { entries, next } = await readPages({ limit, after }, async page => {
        const { limits, next } = await core.limits.list.query({ workspaceId, ...page })
        return { entries: limits.map(recordOf), next }
      })
      return { limits: entries, next }
    },
    print: ({ limits, next }) => (limits.length > 0 ? printLimits(limits) + moreSentence(next) : 'No limits are set.'),
  }),
  command({
    noun: 'limit',
    verb: 'clear',
    help: 'remove the limits of an API key or a wallet in one currency',
    flags: { workspace, ...subject, currency, reason },
    examples: ['--workspace wsp_… --key ak_… --currency USD'],
    async run(core, { workspace: workspaceId, key, wallet, currency, reason }) {
      const subject = subjectOf({ key, wallet })
      await core.limits.clear.mutate({ workspaceId, subject, currency, reason })
      return { ...subject, currency }
    },
    print: ({ currency, ...subject }) =>
      `${'apiKey' in subject ? subject.apiKey : subject.walletId} no longer has a limit in ${currency}.`,
  }),
]

type LimitRecord = ReturnType<typeof recordOf>

function recordOf({ spentToday, resetsAt, createdAt, updatedAt, ...limit }: SpendingLimit) {
  return {
    ...limit,
    spentToday: formatBalance(spentToday, limit.currency),
    resetsAt: resetsAt.toISOString(),
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  }
}

function sentenceOf({ perTransfer, perDay, currency }: LimitRecord): string {
  const bounds = [
    perTransfer && `at most ${perTransfer} ${currency} per transfer`,
    perDay && `at most ${perDay} ${currency} per day`,
  ]
  return bounds.filter(Boolean).join(' and ')
}

function printLimits(limits: LimitRecord[]): string {
  const rows = limits.map(({ apiKey, walletId, currency, perTransfer, perDay, spentToday, isModified }) => [
    apiKey ?? walletId ?? '',
    currency,
    perTransfer ?? 'unlimited',
    perDay ?? 'unlimited',
    spentToday,
    isModified ? 'MODIFIED' : 'SET',
  ])
  return table(['KEY OR WALLET', 'CURRENCY', 'PER TRANSFER', 'PER DAY', 'SPENT TODAY', 'STATUS'], rows)
}
