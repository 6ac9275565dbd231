import { currencyDecimals, Decimal, type FoundWallet, formatBalance, walletStatuses } from '@workspace-wallet/contract'
import { anyText } from '../../command-line/flags.ts'
import { command } from '../command.ts'
import { moreSentence, pageFlags, readPages } from '../pages.ts'
import { table } from '../table.ts'
import { oneOf, parseBalance, parseCurrency } from '../values.ts'
import { wallet, workspace } from './id-flags.ts'

const parseStatus = oneOf('status', walletStatuses)
const balance = { value: 'AMOUNT', parse: parseBalance } as const

export const walletSearch = command({
  noun: 'wallet',
  verb: 'search',
  help: 'find wallets in all workspaces or in one, newest first',
  flags: {
    workspace: { ...workspace, help: 'only wallets of this workspace', required: false },
    wallet: { ...wallet, help: 'only this wallet', required: false },
    'biz-id': { value: 'ID', help: 'only wallets with this bizId', parse: anyText },
    name: { value: 'PREFIX', help: 'only wallets whose name begins with this', parse: anyText },
    currency: {
      value: 'CODE',
      help: 'only this currency',
      choices: [...currencyDecimals.keys()],
      parse: parseCurrency,
    },
    status: { value: 'STATUS', help: 'only this status', choices: walletStatuses, parse: parseStatus },
    'balance-from': { ...balance, help: 'only balances of at least this' },
    'balance-to': { ...balance, help: 'only balances of at most this' },
    ...pageFlags,
  },
  examples: ['--name Main', '--workspace wsp_… --status FROZEN', '--currency USD --balance-from 1000000'],
  async run(
    core,
    { workspace: workspaceId, wallet: walletId, name: namePrefix, currency, status, limit, after, ...given },
  ) {
    const search = {
      workspaceId,
      walletId,
      bizId: given['biz-id'],
      namePrefix,
      currency,
      status,
      balanceFrom: given['balance-from'],
      balanceTo: given['balance-to'],
    }
    const { entries, next } = await readPages({ limit, after }, async page => {
      const { wallets, next } = await core.wallets.search.query({ ...search, ...page })
      return { entries: wallets.map(formatWallet), next }
    })
    return { wallets: entries, next }
  },
  print: ({ wallets, next }) => (wallets.length > 0 ? printWallets(wallets) + moreSentence(next) : 'No wallets found.'),
})

type Shown = ReturnType<typeof formatWallet>

function formatWallet(found: FoundWallet) {
  const { balance, held, currency } = found
  return { ...found, balance: formatBalance(balance, currency), held: formatBalance(new Decimal(held), currency) }
}

function printWallets(wallets: Shown[]): string {
  const rows = wallets.map(each => [
    each.walletId,
    each.workspaceId,
    each.isModified ? 'MODIFIED' : each.status,
    each.balance,
    each.currency,
    each.bizId ?? '',
    each.name,
  ])
  return table(['WALLET', 'WORKSPACE', 'STATUS', 'BALANCE', 'CURRENCY', 'BIZ-ID', 'NAME'], rows)
}
