const plural = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`

export const wallets = {
  about: 'Each wallet holds one currency, which never changes.',
  empty: 'No wallet matches. Create the first wallet of this workspace, or clear the filters.',
  create: 'Create a wallet',
  createAbout: 'Creates an empty wallet. Its currency never changes.',
  wallet: 'Wallet',
  idPrefix: 'ID begins with',
  held: 'Held',
  available: 'Available',
  flowCount: 'Flows',
  deposit: 'Deposit',
  depositAbout: (name: string) =>
    `Brings money from outside into the wallet “${name}”. Do this only for money that has arrived.`,
  withdraw: 'Withdraw',
  withdrawAbout: (name: string) =>
    `Takes money out of the wallet “${name}” and of the workspace. It cannot be reversed.`,
  bizIdAbout: 'Names this action. The same bizId never does it twice.',
  fromHold: 'Pay it out of a hold',
  changes: {
    ACTIVE: {
      name: 'Unfreeze',
      about: (name: string) => `The wallet “${name}” takes part in transfers again.`,
    },
    FROZEN: {
      name: 'Freeze',
      about: (name: string) =>
        `No transfer enters or leaves the wallet “${name}” until an operator unfreezes it. Clients cannot.`,
    },
    CLOSED: {
      name: 'Close',
      about: (name: string) => `Closes the wallet “${name}” for good. Only an empty wallet can be closed.`,
    },
  },
  balanceOverTime: 'Balance over time',
  chart: (flows: number, lowest: string, highest: string, last: string) =>
    `The balance after the last ${plural(flows, 'flow')}: between ${lowest} and ${highest}, now ${last}`,
  now: 'now',
  flows: 'Flows',
  noFlows: 'Nothing has moved yet. A deposit brings the first money.',
  direction: 'Direction',
  directions: { IN: 'In', OUT: 'Out' },
  types: { TRANSFER: 'Transfer', DEPOSIT: 'Deposit', WITHDRAWAL: 'Withdrawal' },
  balanceAfter: 'Balance after',
  counterparty: 'Counterparty',
  outside: 'Outside',
  openHolds: 'Open holds',
  allHolds: 'All holds of this wallet',
  statement: 'Statement',
  showStatement: 'Show the statement',
  opening: 'Opening balance',
  closing: 'Closing balance',
  totalIn: 'Total in',
  totalOut: 'Total out',
  downloadCsv: (flows: number) => `Download CSV with ${plural(flows, 'flow')}`,
  integrity: 'Integrity',
  integrityAbout:
    'Each flow continues a chain of MACs. Verify that nobody has changed, removed or reordered the flows of this wallet.',
  verifyChain: 'Verify the chain',
  intact: 'The chain of this wallet is intact.',
  damaged: (count: number) => `${plural(count, 'finding')} in this wallet.`,
  othersDamaged: (count: number) => `${plural(count, 'other finding')} in this workspace: see the page Ledger.`,
}

export const limits = {
  title: 'Spending limits',
  of: 'Of',
  empty: 'There are no limits: everything that is available can be spent.',
  set: 'Set a limit',
  setAbout: 'Transfers above a limit are refused with T008. What was spent today counts already.',
  change: 'Change',
  clear: 'Remove',
  clearAbout: (currency: string) => `Everything that is available in ${currency} can be spent afterwards.`,
  perTransfer: 'Per transfer',
  perDay: 'Per day (UTC)',
  spentToday: 'Spent today',
  resets: 'Resets',
  unlimited: 'Unlimited',
}
