import type { Flow, Hold, PublicRecord, TransferOrder, Wallet } from '@workspace-wallet/contract'

/** Recorded requests and answers for docs/api.md. A test checks them against the schemas of their endpoints. */

const main = 'wal_01m809xk67ebjrys8zaamprvkg'
const savings = 'wal_01m809xkk4fgcbphgjzmbmv7s2'

const wallet = {
  walletId: main,
  bizId: null,
  name: 'Main',
  currency: 'USD',
  status: 'ACTIVE',
  balance: '899.50',
  createdAt: '2026-11-22T00:18:56.818Z',
  updatedAt: '2026-11-22T00:18:57.594Z',
} satisfies PublicRecord<Wallet>

const flow = {
  flowId: 'flw_01m809xkx4f5dtvepqgyyx9kyn',
  walletId: main,
  sequence: 2,
  direction: 'OUT',
  type: 'TRANSFER',
  amount: '100.50',
  balanceAfter: '899.50',
  currency: 'USD',
  transferId: 'trf_01m809xkx4f5dtvepqgyyx9kyn',
  counterpartyWalletId: savings,
  createdAt: '2026-11-22T00:18:57.594Z',
} satisfies PublicRecord<Flow>

const order = {
  transferId: 'trf_01m809xkx4f5dtvepqgyyx9kyn',
  bizId: 'rent-2026-11',
  status: 'COMPLETED',
  amount: '100.50',
  currency: 'USD',
  sourceWalletId: main,
  targetWalletId: savings,
  remark: null,
  reference: null,
  holdId: null,
  batchId: null,
  reversesTransferId: null,
  createdAt: '2026-11-22T00:18:57.594Z',
  updatedAt: '2026-11-22T00:18:57.594Z',
  completedAt: '2026-11-22T00:18:57.594Z',
  reversedAmount: '0.00',
} satisfies PublicRecord<TransferOrder>

const { transferId, bizId, status, amount, currency } = order
const { reversedAmount: _, ...completedOrder } = order

const hold = {
  holdId: 'hld_01m809y2f3e7trmwk5vq8zj4nd',
  bizId: 'booking-4711',
  walletId: main,
  currency,
  amount: '80.00',
  capturedAmount: '0.00',
  remainingAmount: '80.00',
  status: 'OPEN',
  expiresAt: '2026-11-29T00:19:12.099Z',
  reference: 'room-12',
  remark: null,
  createdAt: '2026-11-22T00:19:12.099Z',
  updatedAt: '2026-11-22T00:19:12.099Z',
} satisfies PublicRecord<Hold>

const batchTime = '2026-11-22T00:19:20.475Z'
const drawn = {
  ...order,
  transferId: 'trf_01m809yamvf3fr1yn4c5ssx0hs',
  bizId: 'stay-4711',
  amount: '70.00',
  reference: 'room-12',
  holdId: hold.holdId,
  batchId: 'trf_01m809yamvf3fr1yn4c5ssx0hs',
  createdAt: batchTime,
  updatedAt: batchTime,
  completedAt: batchTime,
}
const refund = {
  ...drawn,
  transferId: 'trf_01m809yamwe8zb9q2k6tfh3x7c',
  bizId: 'rent-2026-11-refund',
  amount: '0.50',
  sourceWalletId: savings,
  targetWalletId: main,
  reference: null,
  holdId: null,
  reversesTransferId: transferId,
}
const refundItem = {
  reversesTransferId: bizId,
  amount: refund.amount,
  currency,
  bizId: refund.bizId,
}
const travel = {
  ...wallet,
  walletId: 'wal_01m809yp4hfjr8d3cm0ax5w6tn',
  bizId: 'travel-2027',
  name: 'Travel 2027',
  balance: '0.00',
  createdAt: '2026-11-22T00:19:32.241Z',
  updatedAt: '2026-11-22T00:19:32.241Z',
}

function pageOf(totalElements: number, item: object) {
  return { content: [item], page: { size: 1, number: 0, totalElements, totalPages: totalElements } }
}

const webhook = {
  webhookId: 'whk_01m80a5v7xf2nr1sqm9d4gb6ek',
  bizId: 'orders-service',
  url: 'https://shop.example.com/wallet-events',
  types: ['transfer.completed', 'wallet.deposited'],
  concurrency: 1,
  status: 'ACTIVE',
  position: 9,
  lastStatus: 204,
  lastError: null,
  lastAttemptAt: '2026-11-22T00:23:12.840Z',
  failingSince: null,
  previousSecretUntil: null,
  createdAt: '2026-11-22T00:22:54.205Z',
  updatedAt: '2026-11-22T00:22:54.205Z',
}

export const examples = {
  listWallets: { query: 'size=1&currency=USD&sort=name,asc', data: pageOf(2, wallet) },
  getWallet: { params: { walletId: main }, data: wallet },
  getBalance: {
    params: { walletId: main },
    data: {
      walletId: main,
      currency,
      balance: '899.50',
      held: '80.00',
      available: '819.50',
      sequence: 2,
      updatedAt: wallet.updatedAt,
    },
  },
  getBalanceAt: {
    params: { walletId: main, at: '2026-11-22T00:18:57Z' },
    data: { walletId: main, currency, at: '2026-11-22T00:18:57.000Z', balance: '1000.00', sequence: 1 },
  },
  getStatement: {
    params: { walletId: main, from: '2026-11-22', to: '2026-11-22T02:00:00+01:00' },
    data: {
      walletId: main,
      currency,
      from: '2026-11-22T00:00:00.000Z',
      to: '2026-11-22T01:00:00.000Z',
      opening: '0.00',
      closing: '899.50',
      totalIn: '1000.00',
      totalOut: '100.50',
      flowCount: 2,
      firstSequence: 1,
      lastSequence: 2,
    },
  },
  listFlows: { params: { walletId: main }, query: 'size=1&sort=createdAt,desc', data: pageOf(2, flow) },
  listOrders: { query: 'size=1&bizIdPrefix=rent-', data: pageOf(1, order) },
  listWalletOrders: { params: { walletId: main }, query: 'size=1&createdFrom=2026-11-20', data: pageOf(1, order) },
  getOrder: { params: { bizId }, data: order },
  getReceipt: {
    params: { bizId },
    data: {
      receipt:
        'eyJhbGciOiJFZERTQSIsInR5cCI6IndhbGxldC1yZWNlaXB0K2p3dCIsImtpZCI6InIxIn0.eyJ3b3Jrc3BhY2VJZCI6IndzcF8wMW04MDl4azBjZW0zdGZqY2c1cjd2NHE2dCIsInRyYW5zZmVySWQiOiJ0cmZfMDFtODA5eGt4NGY1ZHR2ZXBxZ3l5eDlreW4iLCJiaXpJZCI6InJlbnQtMjAyNi0xMSIsImFtb3VudCI6IjEwMC41MCIsImN1cnJlbmN5IjoiVVNEIiwic291cmNlV2FsbGV0SWQiOiJ3YWxfMDFtODA5eGs2N2VianJ5czh6YWFtcHJ2a2ciLCJ0YXJnZXRXYWxsZXRJZCI6IndhbF8wMW04MDl4a2s0ZmdjYnBoZ2p6bWJtdjdzMiIsImNvbXBsZXRlZEF0IjoiMjAyNi0xMS0yMlQwMDoxODo1Ny41OTRaIiwicG9zaXRpb24iOjQsInJldmVyc2VzVHJhbnNmZXJJZCI6bnVsbCwic291cmNlIjp7InNlcXVlbmNlIjoyLCJtYWMiOiJBU05GWjRtcnplOEJJMFZuaWF2Tjd3RWpSV2VKcTgzdkFTTkZaNG1yemU4QiJ9LCJ0YXJnZXQiOnsic2VxdWVuY2UiOjEsIm1hYyI6IkFZZUVCdS16YkdSSmdueGxLak9Wa1oySEJMdEZ6QUlIaTNnUHFYSlBxczctIn19.f0ZGUnRnTnC3bJnql8nEt1G8kQA56_04cOfwmk7mSnIa1xrXk2RaUVLHYfoRcmIt2004_1jUVNndkdbwqyoJAw',
    },
  },
  getCompletion: { params: { bizId }, data: { transferId, bizId, status, completed: true } },
  createOrder: { body: { sourceWalletId: main, targetWalletId: savings, amount, currency, bizId }, data: order },
  createBatch: {
    body: {
      transfers: [
        {
          sourceWalletId: main,
          targetWalletId: savings,
          amount: drawn.amount,
          currency,
          bizId: drawn.bizId,
          reference: drawn.reference,
          holdId: hold.bizId,
          holdRemainder: 'KEEP',
        },
        refundItem,
      ],
    },
    data: { transfers: [drawn, refund] },
  },
  reverseOrder: { body: refundItem, data: { ...refund, batchId: null } },
  listHolds: { query: 'size=1&status=OPEN&sort=createdAt,asc', data: pageOf(1, hold) },
  listWalletHolds: { params: { walletId: main }, query: 'size=1&reference=room-12', data: pageOf(1, hold) },
  getHold: { params: { bizId: hold.bizId }, data: hold },
  createHold: {
    body: {
      walletId: main,
      amount: hold.amount,
      currency,
      expiresInSeconds: 604_800,
      bizId: hold.bizId,
      reference: hold.reference,
    },
    data: hold,
  },
  releaseHold: {
    body: { holdId: hold.bizId },
    data: { ...hold, remainingAmount: '0.00', status: 'RELEASED', updatedAt: '2026-11-22T00:20:01.310Z' },
  },
  readEvents: {
    params: { after: '3' },
    query: 'size=1&type=transfer.completed',
    data: {
      content: [
        {
          eventId: 'evt_01m809xkx4f5dtvepqgyyx9kyn',
          position: 4,
          type: 'transfer.completed',
          timestamp: order.createdAt,
          workspaceId: 'wsp_01m809xk5tf0g8mj2ynd4gh7v9',
          data: {
            transfer: completedOrder,
            balances: {
              source: { walletId: main, sequence: 2, balanceAfter: '899.50' },
              target: { walletId: savings, sequence: 2, balanceAfter: '350.50' },
            },
            holdRemaining: null,
          },
        },
      ],
      after: 3,
      afterEventId: 'evt_01m809xkqzeqzstq0n0v4h5m9r',
      types: ['transfer.completed'],
      last: 4,
      lastEventId: 'evt_01m809xkx4f5dtvepqgyyx9kyn',
      more: true,
    },
  },
  createWallet: { body: { name: travel.name, currency, bizId: travel.bizId }, data: travel },
  changeWalletStatus: {
    body: { walletId: travel.walletId, status: 'FROZEN' },
    data: { ...travel, status: 'FROZEN', updatedAt: '2026-11-22T00:20:14.006Z' },
  },
  listWebhooks: { query: 'size=1&status=ACTIVE', data: pageOf(1, webhook) },
  getWebhook: { params: { webhookId: webhook.webhookId }, data: webhook },
  createWebhook: {
    body: { url: webhook.url, bizId: webhook.bizId, types: webhook.types },
    data: {
      ...webhook,
      position: 7,
      lastStatus: null,
      lastAttemptAt: null,
      secret: 'whsec_YW4gZXhhbXBsZSBvZiB0aGUgZG9jdW1lbnRhdGlvbi4=',
    },
  },
  updateWebhook: {
    body: { webhookId: webhook.webhookId, types: [], concurrency: 4 },
    data: { ...webhook, types: [], concurrency: 4, updatedAt: '2026-11-22T00:24:09.410Z' },
  },
  rotateWebhookSecret: {
    body: { webhookId: webhook.webhookId, graceSeconds: 3600 },
    data: {
      ...webhook,
      previousSecretUntil: '2026-11-22T01:25:30.007Z',
      updatedAt: '2026-11-22T00:25:30.007Z',
      secret: 'whsec_dGhlIG5leHQgb25lLCBhZnRlciBhIHJvdGF0aW9uLi4=',
    },
  },
  seekWebhook: {
    body: { webhookId: webhook.webhookId, after: 3 },
    data: { ...webhook, position: 3, updatedAt: '2026-11-22T00:26:02.518Z' },
  },
  deleteWebhook: { body: { webhookId: webhook.webhookId }, data: { webhookId: webhook.webhookId } },
}
