import type { Event, EventType } from '@workspace-wallet/contract'
import { examples } from './examples.ts'

/** When each type of event occurs, in Markdown. Links to operations are as in descriptions.ts. */
export const eventDescriptions: Record<EventType, string> = {
  'transfer.completed':
    'Money moved between two wallets: by [a transfer](#createTransfer), an item of [a batch](#createTransferBatch), or [a reversal](#reverseTransfer), which has `reversesTransferId`. Use it to complete orders, to notify users, and to keep balances up to date.',
  'wallet.deposited': 'An operator deposited money into a wallet. Use it to credit a user whose payment arrived.',
  'wallet.withdrawn': 'An operator withdrew money from a wallet. Use it to tell a user that a payout left.',
  'hold.created': 'A part of a balance was [reserved](#createHold). Less is available; the balance is the same.',
  'hold.released':
    'A hold was [released](#releaseHold), by a client or an operator, and what remained of it is available again. A hold that a transfer captures or ends has no event of its own: see `holdRemaining` of the transfer.',
  'hold.expired':
    'A hold reached its `expiresAt` before it was captured or released. What remained of it is available again from that time, even if this event follows seconds later. Use it to cancel what the hold was for.',
  'wallet.created': 'A wallet was created, by a [client](#createWallet) or an operator.',
  'wallet.frozen':
    'A wallet was frozen, by a [client](#changeWalletStatus) or an operator: it neither pays nor receives. If an operator froze it, only an operator can unfreeze it.',
  'wallet.unfrozen': 'A frozen wallet can pay and receive again.',
  'wallet.closed': 'A wallet was closed for good. It is empty.',
}

const { listWallets, createHold, releaseHold, createWallet, readEvents } = examples
const [completed] = readEvents.data.content as [(typeof readEvents.data.content)[0]]
const hold = createHold.data as Extract<Event, { type: 'hold.created' }>['data']['hold']
const { walletId, currency } = listWallets.data.content[0] as (typeof examples)['getWallet']['data']
const opened = createWallet.data

const funding = {
  transferId: 'trf_01m809xkqzeqzstq0n0v4h5m9r',
  bizId: 'pay-in-11',
  walletId,
  type: 'DEPOSIT' as const,
  amount: '1000.00',
  currency,
  holdId: null,
  createdAt: '2026-11-22T00:18:57.311Z',
}
const balance = { walletId, sequence: 1, balanceAfter: '1000.00' }
const withdrawal = { ...funding, transferId: 'trf_01m80a9f3qeyk8w5h2bzn6cvdt', bizId: 'pay-out-11', amount: '30.00' }
const change = (status: 'ACTIVE' | 'FROZEN' | 'CLOSED') => ({
  walletId: opened.walletId,
  bizId: opened.bizId,
  currency,
  status,
  by: 'WORKSPACE' as const,
})

type Data = { [Type in EventType]: Extract<Event, { type: Type }>['data'] }
const data: Omit<Data, 'transfer.completed'> = {
  'wallet.deposited': { funding, balances: { target: balance }, holdRemaining: null },
  'wallet.withdrawn': {
    funding: { ...withdrawal, type: 'WITHDRAWAL', createdAt: '2026-11-22T00:25:11.020Z' },
    balances: { source: { walletId, sequence: 3, balanceAfter: '869.50' } },
    holdRemaining: null,
  },
  'hold.created': { hold },
  'hold.released': { hold: releaseHold.data as typeof hold },
  'hold.expired': { hold: { ...hold, remainingAmount: '0.00', status: 'EXPIRED', updatedAt: hold.expiresAt } },
  'wallet.created': change('ACTIVE'),
  'wallet.frozen': change('FROZEN'),
  'wallet.unfrozen': change('ACTIVE'),
  'wallet.closed': change('CLOSED'),
}

/** The ID and time of each example: of the transfer, or of the row of the journal. */
const places: Record<
  Exclude<EventType, 'transfer.completed'>,
  [eventId: string, position: number, timestamp: string]
> = {
  'wallet.deposited': ['evt_01m809xkqzeqzstq0n0v4h5m9r', 3, funding.createdAt],
  'wallet.withdrawn': ['evt_01m80a9f3qeyk8w5h2bzn6cvdt', 12, '2026-11-22T00:25:11.020Z'],
  'hold.created': ['evt_01m809y2f3e7trmwk5vq8zj4nd', 5, hold.createdAt],
  'hold.released': ['evt_01m809zjhrf1w9e6tcm4q2yb7x', 9, releaseHold.data.updatedAt],
  'hold.expired': ['evt_01m8tbqa3ke2cvx7rj0n5dgwfh', 31, hold.expiresAt],
  'wallet.created': ['evt_01m809yp4hfjr8d3cm0ax5w6tn', 8, opened.createdAt],
  'wallet.frozen': ['evt_01m809zyxpe4bkt2g7vh8mrc5d', 10, '2026-11-22T00:20:14.006Z'],
  'wallet.unfrozen': ['evt_01m80a0d6rfvs3n9xj5c1tqwey', 11, '2026-11-22T00:21:44.518Z'],
  'wallet.closed': ['evt_01m80aa0xcet6m2hd8kz4rvb9w', 13, '2026-11-22T00:26:40.907Z'],
}

/** An event of each type, as webhooks deliver it. */
export const eventExamples: Record<EventType, object> = {
  'transfer.completed': completed,
  ...(Object.fromEntries(
    Object.entries(data).map(([type, content]) => {
      const [eventId, position, timestamp] = places[type as keyof typeof places]
      return [type, { eventId, position, type, timestamp, workspaceId: completed.workspaceId, data: content }]
    }),
  ) as Record<keyof typeof data, object>),
}
