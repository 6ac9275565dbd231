import {
  currencyDecimals,
  formatBalance,
  type TracedFlow,
  type TracedTransfer,
  type TransferRecord,
  transferTypes,
} from '@workspace-wallet/contract'
import { anyText } from '../../command-line/flags.ts'
import { command } from '../command.ts'
import { moreSentence, pageFlags, readPages } from '../pages.ts'
import { table } from '../table.ts'
import { oneOf, parseBalance, parseCurrency, parsePast } from '../values.ts'
import { wallet, workspace } from './id-flags.ts'

const parseType = oneOf('type', transferTypes)
const fundingTypes = ['DEPOSIT', 'WITHDRAWAL'] as const
const parseFundingType = oneOf('type', fundingTypes)
const amount = { value: 'AMOUNT', parse: parseBalance } as const
const where = {
  workspace: { ...workspace, help: 'only of this workspace', required: false },
  wallet: { ...wallet, help: 'only from or to this wallet', required: false },
} as const
const when = {
  from: {
    value: 'WHEN',
    help: 'only since this time: a date, a time with a zone, or a duration before now such as 24h',
    parse: parsePast,
  },
  to: { value: 'WHEN', help: 'only before this time, in the same formats', parse: parsePast },
} as const
const named = {
  workspace: { ...workspace, help: 'ID of the workspace, which a bizId needs', required: false },
} as const

export const transferSearchCommands = [
  command({
    noun: 'transfer',
    verb: 'search',
    help: 'find transfers, deposits and withdrawals in all workspaces or in one, newest first',
    flags: {
      ...where,
      transfer: { value: 'trf_…', help: 'only this transfer', parse: anyText },
      'biz-id': { value: 'ID', help: 'only with this bizId', parse: anyText },
      reference: { value: 'TEXT', help: 'only with this reference', parse: anyText },
      remark: { value: 'PREFIX', help: 'only if the remark begins with this', parse: anyText },
      type: { value: 'TYPE', help: 'only of this type', choices: transferTypes, parse: parseType },
      currency: {
        value: 'CODE',
        help: 'only this currency',
        choices: [...currencyDecimals.keys()],
        parse: parseCurrency,
      },
      'amount-from': { ...amount, help: 'only amounts of at least this' },
      'amount-to': { ...amount, help: 'only amounts of at most this' },
      actor: { value: 'ACTOR', help: 'only by this actor, such as key:ak_… or operator:ada', parse: anyText },
      request: { value: 'ID', help: 'only of the request with this ID (X-Request-Id)', parse: anyText },
      ...when,
      ...pageFlags,
    },
    examples: ['--request 0199…', '--workspace wsp_… --amount-from 1000 --from 7d', '--wallet wal_… --remark Rent'],
    async run(core, { workspace: workspaceId, wallet: walletId, transfer: transferId, limit, after, ...given }) {
      const { reference, remark, type, currency, actor, request, from, to } = given
      const search = {
        ...{ workspaceId, walletId, transferId, reference, type, currency, actor, from, to },
        bizId: given['biz-id'],
        remarkPrefix: remark,
        amountFrom: given['amount-from'],
        amountTo: given['amount-to'],
        requestId: request,
      }
      return listTransfers({ limit, after }, page => core.transfers.search.query({ ...search, ...page }))
    },
    print: printList,
  }),
  command({
    noun: 'transfer',
    verb: 'trace',
    help: 'show a transfer, deposit or withdrawal with who made it, its flows, reversals, hold, batch and receipt',
    flags: {
      transfer: { value: 'ID', help: 'transferId, or bizId with --workspace', required: true, parse: anyText },
      ...named,
    },
    examples: ['--transfer trf_…', '--transfer order-17 --workspace wsp_…'],
    async run(core, { transfer: name, workspace: workspaceId }) {
      return formatTraced(await core.transfers.trace.query({ name, workspaceId }))
    },
    print: printTraced,
    failure: ({ source, target, modified }) =>
      source.isGenuine && target.isGenuine && modified.length === 0
        ? undefined
        : 'A flow of the transfer, or of one that belongs to it, was modified outside the service: run ledger verify.',
  }),
]

export const fundingCommands = [
  command({
    noun: 'funding',
    verb: 'list',
    help: 'list deposits and withdrawals of all workspaces or of one, newest first',
    flags: {
      ...where,
      type: { value: 'TYPE', help: 'only of this type', choices: fundingTypes, parse: parseFundingType },
      ...when,
      ...pageFlags,
    },
    examples: ['--from 24h', '--workspace wsp_… --type WITHDRAWAL'],
    run: (core, { workspace: workspaceId, wallet: walletId, type, from, to, limit, after }) =>
      listTransfers({ limit, after }, page =>
        core.fundings.list.query({ workspaceId, walletId, type, from, to, ...page }),
      ),
    print: printList,
  }),
  command({
    noun: 'funding',
    verb: 'show',
    help: 'show a deposit or withdrawal',
    flags: {
      funding: { value: 'ID', help: 'transferId, or bizId with --workspace', required: true, parse: anyText },
      ...named,
    },
    examples: ['--funding trf_…', '--funding invoice-2026-0042 --workspace wsp_…'],
    run: async (core, { funding: name, workspace: workspaceId }) =>
      formatTransfer(await core.fundings.get.query({ name, workspaceId })),
    print: funding => describe(funding).join('\n'),
  }),
]

type Shown = ReturnType<typeof formatTransfer>

function formatTransfer(transfer: TransferRecord) {
  return { ...transfer, amount: formatBalance(transfer.amount, transfer.currency) }
}

type Page = { limit: number; after: string | undefined }

async function listTransfers(
  page: Page,
  read: (page: Page) => Promise<{ transfers: TransferRecord[]; next: string | null }>,
): Promise<{ transfers: Shown[]; next: string | null }> {
  const { entries, next } = await readPages(page, async each => {
    const { transfers, next } = await read(each)
    return { entries: transfers.map(formatTransfer), next }
  })
  return { transfers: entries, next }
}

function printList({ transfers, next }: { transfers: Shown[]; next: string | null }): string {
  if (transfers.length === 0) return 'No transfers found.'
  const rows = transfers.map(each => [
    each.createdAt.toISOString(),
    each.transferId,
    each.type,
    each.amount,
    each.currency,
    each.sourceWalletId ?? 'outside',
    each.targetWalletId ?? 'outside',
    each.bizId ?? '',
    each.actor,
    each.workspaceId,
  ])
  const headings = ['TIME', 'TRANSFER', 'TYPE', 'AMOUNT', 'CURRENCY', 'FROM', 'TO', 'BIZ-ID', 'ACTOR', 'WORKSPACE']
  return table(headings, rows) + moreSentence(next)
}

function formatTraced(traced: TracedTransfer) {
  const { currency } = traced.transfer
  const flow = (side: TracedFlow) => ({
    ...side,
    balanceAfter: side.balanceAfter && formatBalance(side.balanceAfter, currency),
  })
  return {
    ...traced,
    transfer: formatTransfer(traced.transfer),
    source: flow(traced.source),
    target: flow(traced.target),
    reversals: traced.reversals.map(formatTransfer),
    reversedAmount: formatBalance(traced.reversedAmount, currency),
    reverses: traced.reverses && formatTransfer(traced.reverses),
    hold: traced.hold && {
      ...traced.hold,
      capturedAmount: formatBalance(traced.hold.capturedAmount, currency),
      remainingAmount: formatBalance(traced.hold.remainingAmount, currency),
    },
    batch: traced.batch.map(formatTransfer),
  }
}

type Traced = ReturnType<typeof formatTraced>

function printTraced(traced: Traced): string {
  const { transfer, reversals, reverses, hold, batch, modified, receipt } = traced
  const { currency } = transfer
  const side = (flow: Traced['source']) =>
    `${flow.walletId ? `${flow.walletId} "${flow.walletName}"` : 'outside'}, flow ${flow.sequence}, balance after it ${flow.balanceAfter}: ${flow.isGenuine ? 'genuine' : 'MODIFIED outside the service'}`
  return [
    ...describe(transfer),
    `From        ${side(traced.source)}`,
    `To          ${side(traced.target)}`,
    ...(reverses ? [`Reverses    ${reverses.transferId} of ${reverses.amount} ${currency}`] : []),
    ...(reversals.length > 0 ? [`Reversed    ${traced.reversedAmount} ${currency} by ${idsOf(reversals)}`] : []),
    ...(hold ? [`Hold        ${hold.holdId}, ${hold.status}, captured ${hold.capturedAmount} of ${hold.amount}`] : []),
    ...(batch.length > 0 ? [`Batch       ${idsOf(batch)}`] : []),
    ...(modified.length > 0 ? [`MODIFIED    ${modified.join(', ')}`] : []),
    ...(receipt ? [`Receipt     ${receipt}`] : []),
  ].join('\n')
}

function describe(transfer: Shown): string[] {
  const { type, transferId, workspaceId, position, amount, currency, bizId, reference, remark, createdAt } = transfer
  const text = (value: string) => JSON.stringify(value)
  return [
    `${type} ${transferId} of ${amount} ${currency}, ${createdAt.toISOString()}`,
    `Workspace   ${workspaceId}, position ${position}`,
    ...(bizId === null ? [] : [`BizId       ${bizId}`]),
    ...(reference === null ? [] : [`Reference   ${text(reference)}`]),
    ...(remark === null ? [] : [`Remark      ${text(remark)}`]),
    `Made by     ${transfer.actor}, request ${text(transfer.requestId)}${transfer.clientAddress === null ? '' : `, from ${transfer.clientAddress}`}`,
  ]
}

function idsOf(transfers: Shown[]): string {
  return transfers.map(({ transferId }) => transferId).join(', ')
}
