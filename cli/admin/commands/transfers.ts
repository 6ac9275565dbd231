import { amountFault } from '@workspace-wallet/contract'
import { orderRecord } from '@workspace-wallet/gateway/records'
import { anyText } from '../../command-line/flags.ts'
import { command } from '../command.ts'
import { onWorkspace } from '../on-workspace.ts'
import { decimalsSentence, isOutcomeUnknown } from '../sentences.ts'
import { parseAmount, parseBizId, parseCurrency, parseRemark } from '../values.ts'
import { reason, workspace } from './id-flags.ts'

export const transferCommands = [
  command({
    noun: 'transfer',
    verb: 'reverse',
    help: 'return the amount of a transfer, or a part of it, to the wallet that paid it',
    flags: {
      workspace,
      transfer: { value: 'ID', help: 'transferId or bizId of the transfer', required: true, parse: anyText },
      amount: {
        value: 'AMOUNT',
        help: 'amount to return, at most what is not reversed yet',
        required: true,
        parse: parseAmount,
      },
      currency: { value: 'CODE', help: 'currency of the transfer', required: true, parse: parseCurrency },
      'biz-id': {
        value: 'ID',
        help: 'your own ID for the reversal: repeating the command with the same ID moves the money only once',
        required: true,
        parse: parseBizId,
      },
      remark: { value: 'TEXT', help: 'a remark for the reversal, which clients see', parse: parseRemark },
      reason,
    },
    examples: [
      '--workspace wsp_… --transfer trf_… --amount 40.00 --currency USD --biz-id refund-2026-0042',
      "--workspace wsp_… --transfer order-17 --amount 40.00 --currency USD --biz-id refund-17 --remark 'damaged goods'",
    ],
    async run(core, { workspace: workspaceId, transfer, amount, currency, remark, 'biz-id': bizId, reason }) {
      const fault = amountFault(amount, currency)
      if (fault) throw new Error(decimalsSentence('--amount', fault.limit))
      const reversal = { reversesTransferId: transfer, amount, currency, bizId, remark }
      try {
        return orderRecord(await core.transfers.reverse.mutate({ ...onWorkspace(workspaceId), reversal, reason }))
      } catch (error) {
        if (!isOutcomeUnknown(error)) throw error
        throw new Error(
          `It is unknown whether the money was moved: repeat the command with --biz-id ${bizId}, which moves it at most once.`,
          { cause: error },
        )
      }
    },
    print: ({ transferId, bizId, amount, currency, sourceWalletId, targetWalletId, reversesTransferId }) =>
      `Returned ${amount} ${currency} of transfer ${reversesTransferId} from wallet ${sourceWalletId} to wallet ${targetWalletId}: transfer ${transferId}, with the bizId ${bizId}.`,
  }),
]
