/**
 * One request for each rule, with the code that it is answered with, in order. They come after the opening, so that a run
 * covers every rule whatever its seed.
 */
import type { Hold } from './books.ts'
import type { Request, Transfer } from './requests.ts'

const transfer = (bizId: string, change: Partial<Transfer> = {}): Transfer => ({
  kind: 'transfer',
  sourceWalletId: 'Wallet 0',
  targetWalletId: 'Wallet 1',
  amount: '5',
  currency: 'USD',
  bizId: `example-${bizId}`,
  ...change,
})

const reversal = (bizId: string, original: string, amount = '1') =>
  ({
    kind: 'reversal',
    reversesTransferId: `example-${original}`,
    amount,
    currency: 'USD',
    bizId: `example-${bizId}`,
  }) as const

const hold = (bizId: string, expiresInSeconds: Hold['expiresInSeconds']) =>
  ({
    kind: 'hold',
    walletId: 'Wallet 0',
    amount: '4',
    currency: 'USD',
    expiresInSeconds,
    bizId: `example-${bizId}`,
  }) as const

const changed = 'Example wallet'
const status = (by: 'WORKSPACE' | 'OPERATOR', to: 'ACTIVE' | 'FROZEN' | 'CLOSED', walletId = changed) =>
  ({ kind: 'status', by, walletId, status: to }) as const

export const examples: [code: string, Request][] = [
  // Transfers
  ['2000', transfer('plain')],
  ['2000', transfer('plain', { amount: '5.0' })],
  ['T005', transfer('plain', { amount: '6' })],
  ['S012', transfer('malformed', { amount: '0' })],
  ['T002', transfer('expensive', { amount: '100000' })],
  ['T003', transfer('currency', { amount: '1', currency: 'JPY' })],
  ['T004', transfer('same', { targetWalletId: 'Wallet 0' })],
  ['W001', transfer('absent', { targetWalletId: 'absent' })],
  [
    'T008',
    { ...transfer('day'), sourceWalletId: 'Wallet 2', targetWalletId: 'Wallet 3', currency: 'JPY', amount: '251' },
  ],
  [
    'T008',
    { ...transfer('each'), sourceWalletId: 'Wallet 4', targetWalletId: 'Wallet 5', currency: 'ETH', amount: '15' },
  ],
  ['2000', { kind: 'withdrawal', walletId: 'Wallet 1', amount: '1.5', bizId: 'example-withdrawal' }],
  // Reversals
  ['2000', reversal('reversal', 'plain', '2')],
  ['T001', reversal('of-nothing', 'nothing')],
  ['T006', reversal('of-reversal', 'reversal')],
  ['T007', reversal('too-much', 'plain', '3.01')],
  // Batches
  ['2000', { kind: 'batch', transfers: [transfer('first'), reversal('second', 'first'), transfer('third')] }],
  ['T002', { kind: 'batch', transfers: [transfer('fourth'), transfer('fifth', { amount: '100000' })] }],
  ['T005', { kind: 'batch', transfers: [transfer('fourth'), transfer('first')] }],
  // Holds
  ['2000', hold('expiring', 1)],
  ['2000', hold('held', 3600)],
  ['T005', hold('held', 3601)],
  ['H003', transfer('draw', { holdId: 'example-held', amount: '4.01' })],
  ['H004', transfer('draw', { holdId: 'example-held', sourceWalletId: 'Wallet 1', targetWalletId: 'Wallet 0' })],
  ['2000', transfer('draw', { holdId: 'example-held', amount: '1', holdRemainder: 'KEEP' })],
  ['2000', { kind: 'release', holdId: 'example-held' }],
  ['H002', transfer('late-draw', { holdId: 'example-held', amount: '1' })],
  ['H001', { kind: 'release', holdId: 'absent' }],
  // Wallets
  ['2000', { kind: 'wallet', by: 'WORKSPACE', name: changed, currency: 'USD', bizId: 'example-wallet' }],
  ['2000', status('WORKSPACE', 'FROZEN')],
  ['W002', transfer('frozen', { targetWalletId: changed })],
  ['2000', status('OPERATOR', 'FROZEN')],
  ['W004', status('WORKSPACE', 'ACTIVE')],
  ['2000', status('OPERATOR', 'ACTIVE')],
  ['2000', status('WORKSPACE', 'CLOSED')],
  ['W003', status('WORKSPACE', 'CLOSED', 'Wallet 0')],
  // Reads
  ['2000', { kind: 'read', what: 'receipt', id: 'example-plain' }],
  ['2000', { kind: 'read', what: 'receipt', id: 'example-plain' }],
  ['2000', { kind: 'read', what: 'receipt', id: 'example-second' }],
  ['T001', { kind: 'read', what: 'receipt', id: 'example-withdrawal' }],
  ['H001', { kind: 'read', what: 'hold', id: 'absent' }],
]
