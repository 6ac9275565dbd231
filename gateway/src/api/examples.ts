/** Recorded requests and answers for docs/api.md. A test checks them against the schemas of their endpoints. */

const main = 'wal_01m809xk67ebjrys8zaamprvkg'
const savings = 'wal_01m809xkk4fgcbphgjzmbmv7s2'

const wallet = {
  walletId: main,
  name: 'Main',
  currency: 'USD',
  status: 'ACTIVE',
  balance: '899.50',
  createdAt: '2026-11-22T00:18:56.818Z',
  updatedAt: '2026-11-22T00:18:57.594Z',
}

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
}

const order = {
  transferId: 'trf_01m809xkx4f5dtvepqgyyx9kyn',
  bizId: 'rent-2026-11',
  status: 'COMPLETED',
  amount: '100.50',
  currency: 'USD',
  sourceWalletId: main,
  targetWalletId: savings,
  remark: null,
  createdAt: '2026-11-22T00:18:57.594Z',
  updatedAt: '2026-11-22T00:18:57.594Z',
  completedAt: '2026-11-22T00:18:57.594Z',
}

const { transferId, bizId, status, amount, currency } = order

function pageOf(totalElements: number, item: object) {
  return { content: [item], page: { size: 1, number: 0, totalElements, totalPages: totalElements } }
}

export const examples = {
  listWallets: { query: 'size=1&currency=USD&sort=name,asc', data: pageOf(2, wallet) },
  getWallet: { params: { walletId: main }, data: wallet },
  getBalance: {
    params: { walletId: main },
    data: { walletId: main, currency, balance: '899.50', available: '899.50', updatedAt: wallet.updatedAt },
  },
  listFlows: { params: { walletId: main }, query: 'size=1&sort=createdAt,desc', data: pageOf(2, flow) },
  listOrders: { query: 'size=1&bizIdPrefix=rent-', data: pageOf(1, order) },
  listWalletOrders: { params: { walletId: main }, query: 'size=1&createdFrom=2026-11-20', data: pageOf(1, order) },
  getOrder: { params: { bizId }, data: order },
  getCompletion: { params: { bizId }, data: { transferId, bizId, status, completed: true } },
  createOrder: { body: { sourceWalletId: main, targetWalletId: savings, amount, currency, bizId }, data: order },
}
