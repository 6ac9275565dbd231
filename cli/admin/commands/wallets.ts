import { randomUUID } from 'node:crypto'
import { currencyDecimals, type FundingReceipt, formatBalance, type WalletStatus } from '@workspace-wallet/contract'
import type { CoreClient } from '@workspace-wallet/core-client'
import { type Command, command } from '../command.ts'
import { onWorkspace } from '../on-workspace.ts'
import { isOutcomeUnknown } from '../sentences.ts'
import { parseAmount, parseBizId, parseCurrency, parseName, parseWalletBizId } from '../values.ts'
import { reason, wallet, workspace } from './id-flags.ts'

export const walletCommands = [
  command({
    noun: 'wallet',
    verb: 'create',
    help: 'create an empty wallet',
    flags: {
      workspace,
      currency: {
        value: 'CODE',
        help: 'currency code, such as USD',
        required: true,
        choices: [...currencyDecimals.keys()],
        parse: parseCurrency,
      },
      name: { value: 'NAME', help: 'display name of the wallet', required: true, parse: parseName },
      'biz-id': {
        value: 'ID',
        help: 'your own ID for the wallet: repeating the command with the same ID creates only one',
        parse: parseWalletBizId,
      },
    },
    examples: [
      '--workspace wsp_… --currency USD --name Main',
      '--workspace wsp_… --currency USD --name Main --biz-id main',
    ],
    async run(core, { workspace: workspaceId, currency, name, ...given }) {
      const { walletId, bizId } = await core.wallets.create.mutate({
        workspaceId,
        currency,
        name,
        bizId: given['biz-id'],
      })
      return { walletId, bizId }
    },
    print: ({ walletId, bizId }) => `Created wallet ${walletId}${bizId === null ? '' : `, with the bizId ${bizId}`}.`,
  }),
  fundingCommand('deposit', 'deposit money from outside into a wallet', 'Deposited', 'into'),
  fundingCommand('withdraw', 'withdraw money from a wallet to the outside', 'Withdrew', 'from'),
  statusCommand('freeze', 'FROZEN', 'freeze a wallet: it can neither pay nor receive, and no client can unfreeze it'),
  statusCommand('unfreeze', 'ACTIVE', 'unfreeze a wallet: it can pay and receive again'),
  statusCommand('close', 'CLOSED', 'close an empty wallet permanently'),
]

function statusCommand(verb: string, status: WalletStatus, help: string): Command {
  return command({
    noun: 'wallet',
    verb,
    help,
    flags: { workspace, wallet, reason },
    examples: ['--workspace wsp_… --wallet wal_…', "--workspace wsp_… --wallet wal_… --reason 'case 4711'"],
    async run(core, { workspace: workspaceId, wallet: walletId, reason }) {
      const record = await core.wallets.changeStatus.mutate({ workspaceId, walletId, status, reason })
      return { ...record, balance: formatBalance(record.balance, record.currency) }
    },
    print: ({ walletId, status }) =>
      `Wallet ${walletId} is now ${status}${status === 'FROZEN' ? ': only operators can unfreeze or close it' : ''}.`,
  })
}

function fundingCommand(verb: 'deposit' | 'withdraw', help: string, done: string, preposition: string): Command {
  return command({
    noun: 'wallet',
    verb,
    help,
    flags: {
      workspace,
      wallet,
      amount: {
        value: 'AMOUNT',
        help: "amount in the wallet's currency, such as 100.50",
        required: true,
        parse: parseAmount,
      },
      'biz-id': {
        value: 'ID',
        help: 'your own ID for this operation: repeating the command with the same ID moves the money only once',
        parse: parseBizId,
      },
      reason,
    },
    examples: [
      '--workspace wsp_… --wallet wal_… --amount 100.50',
      "--workspace wsp_… --wallet wal_… --amount 100.50 --biz-id invoice-2026-0042 --reason 'paid by wire'",
    ],
    async run(core, { workspace: workspaceId, wallet: walletId, amount, reason, ...given }) {
      // Generated here, so that the command can be repeated with it if the response is lost.
      const bizId = given['biz-id'] ?? `${verb}-${randomUUID()}`
      try {
        const receipt = await core.wallets[verb].mutate({ workspaceId, walletId, amount, bizId, reason })
        return { ...receipt, ...(await balanceNow(core, workspaceId, receipt)) }
      } catch (error) {
        if (!isOutcomeUnknown(error)) throw error
        throw new Error(
          `It is unknown whether the money was moved: repeat the command with --biz-id ${bizId}, which moves it at most once.`,
          { cause: error },
        )
      }
    },
    print: ({ amount, currency, walletId, balance, bizId }) =>
      `${done} ${amount} ${currency} ${preposition} wallet ${walletId}, with the bizId ${bizId}.${balance === undefined ? '' : ` The balance is now ${balance} ${currency}.`}`,
  })
}

/** The balance after the operation; nothing if it cannot be read, because the operation has succeeded anyway. */
async function balanceNow(
  core: CoreClient,
  workspaceId: string,
  { walletId, currency }: FundingReceipt,
): Promise<{ balance?: string }> {
  try {
    const { balance } = await core.wallets.balance.query({ ...onWorkspace(workspaceId), walletId })
    return { balance: formatBalance(balance, currency) }
  } catch {
    return {}
  }
}
