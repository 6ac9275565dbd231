import { randomUUID } from 'node:crypto'
import { currencyDecimals, type FundingReceipt, formatBalance, type Wallet } from '@workspace-wallet/contract'
import type { CoreClient } from '@workspace-wallet/core-client'
import { type Command, command } from '../command.ts'
import { isOutcomeUnknown } from '../sentences.ts'
import { parseAmount, parseBizId, parseCurrency, parseId, parseName } from '../values.ts'
import { workspace } from './id-flags.ts'

const wallet = { value: 'wal_…', help: 'ID of the wallet', required: true, parse: parseId('wallet') } as const

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
    },
    examples: ['--workspace wsp_… --currency USD --name Main'],
    async run(core, { workspace: workspaceId, currency, name }) {
      const { walletId } = await core.wallets.create.mutate({ workspaceId, currency, name })
      return { walletId }
    },
    print: ({ walletId }) => `Wallet ${walletId} is there, and empty.`,
  }),
  fundingCommand('deposit', 'deposit money from outside into a wallet', 'entered'),
  fundingCommand('withdraw', 'withdraw money from a wallet to the outside', 'left'),
  walletCommand('freeze', 'freeze a wallet: it neither pays nor receives', (core, input) =>
    core.wallets.freeze.mutate(input),
  ),
  walletCommand('unfreeze', 'unfreeze a wallet: it pays and receives again', (core, input) =>
    core.wallets.unfreeze.mutate(input),
  ),
  walletCommand('close', 'close an empty wallet permanently', (core, input) => core.wallets.close.mutate(input)),
]

function walletCommand(
  verb: string,
  help: string,
  action: (core: CoreClient, input: { workspaceId: string; walletId: string }) => Promise<Wallet>,
): Command {
  return command({
    noun: 'wallet',
    verb,
    help,
    flags: { workspace, wallet },
    examples: ['--workspace wsp_… --wallet wal_…'],
    async run(core, { workspace: workspaceId, wallet: walletId }) {
      const record = await action(core, { workspaceId, walletId })
      return { ...record, balance: formatBalance(record.balance, record.currency) }
    },
    print: ({ walletId, status }) => `Wallet ${walletId} is ${status}.`,
  })
}

function fundingCommand(verb: 'deposit' | 'withdraw', help: string, moved: string): Command {
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
        help: 'your own ID for the movement: repeating the command with the same ID moves the money only once',
        parse: parseBizId,
      },
    },
    examples: [
      '--workspace wsp_… --wallet wal_… --amount 100.50',
      '--workspace wsp_… --wallet wal_… --amount 100.50 --biz-id invoice-2026-0042',
    ],
    async run(core, { workspace: workspaceId, wallet: walletId, amount, ...given }) {
      // Named before it is sent: should the answer be lost, the same command can be given again.
      const bizId = given['biz-id'] ?? `${verb}-${randomUUID()}`
      try {
        const receipt = await core.wallets[verb].mutate({ workspaceId, walletId, amount, bizId })
        return { ...receipt, ...(await balanceNow(core, workspaceId, receipt)) }
      } catch (error) {
        if (!isOutcomeUnknown(error)) throw error
        throw new Error(
          `Whether the ${verb} was done is not known: give the same command again with --biz-id ${bizId}, which does it once at most.`,
          { cause: error },
        )
      }
    },
    print: ({ amount, currency, walletId, balance, bizId }) =>
      `${amount} ${currency} ${moved} ${walletId} under the bizId ${bizId}${balance === undefined ? '' : `; it now holds ${balance} ${currency}`}.`,
  })
}

/** The money has moved: that the balance cannot be read now is no reason to say otherwise. */
async function balanceNow(
  core: CoreClient,
  workspaceId: string,
  { walletId, currency }: FundingReceipt,
): Promise<{ balance?: string }> {
  try {
    const { balance } = await core.wallets.balance.query({ workspaceId, walletId, caller: { requestId: randomUUID() } })
    return { balance: formatBalance(balance, currency) }
  } catch {
    return {}
  }
}
