/** The requests of the model tests, and which of them are malformed. */

/** With the number of decimals. */
export const currencies = { USD: 2, JPY: 0, ETH: 18 } as const
export type Currency = keyof typeof currencies

/** In seconds. */
export const longestHold = 31_536_000

export type Status = 'ACTIVE' | 'FROZEN' | 'CLOSED'
/** Clients use the REST API, operators tRPC. */
export type Changer = 'WORKSPACE' | 'OPERATOR'

type Draw = { holdId?: string; holdRemainder?: 'KEEP' | 'RELEASE' }

export type Transfer = Draw & {
  kind: 'transfer'
  sourceWalletId: string
  targetWalletId: string
  amount: string
  currency: Currency
  bizId?: string
  reference?: string
}
export type Reversal = {
  kind: 'reversal'
  reversesTransferId: string
  amount: string
  currency: Currency
  bizId: string
  reference?: string
}
export type Item = Transfer | Reversal
/** In `currency`, or else in that of the wallet. The public API has no such requests. */
export type Funding = Draw & {
  kind: 'deposit' | 'withdrawal'
  walletId: string
  amount: string
  currency?: Currency
  /** Callers of core have to give one. */
  bizId?: string
}
/** What moves money by one transfer. */
export type Posting = Item | Funding
/** The public API accepts batches of transfers and reversals, all with a bizId. */
export type Batch = { kind: 'batch'; transfers: Posting[] }

export type HoldCreation = {
  kind: 'hold'
  walletId: string
  amount: string
  currency: Currency
  expiresInSeconds: number
  bizId: string
  reference?: string
}
export type Release = { kind: 'release'; holdId: string }
/** Operators create wallets without a bizId. */
export type WalletCreation = { kind: 'wallet'; by: Changer; name: string; currency: Currency; bizId?: string }
export type StatusChange = { kind: 'status'; by: Changer; walletId: string; status: Status }
export type Read = { kind: 'read'; what: 'wallet' | 'balance' | 'order' | 'hold' | 'receipt'; id: string }
/** Times are ISO 8601 in UTC with milliseconds. */
export type PastRead =
  | { kind: 'read'; what: 'balanceAt'; id: string; at: string }
  | { kind: 'read'; what: 'statement'; id: string; from: string; to: string }

export type Request = Posting | Batch | HoldCreation | Release | WalletCreation | StatusChange | Read | PastRead

/** `index`: the place of the item that failed in its batch. */
export type Answer = { code: string; data: Record<string, unknown> | null; index: number | null }

/** The place of the first item of a batch that is malformed, or else of the first one with a bizId that is repeated. */
export function malformedIndex({ transfers }: Batch): number | undefined {
  const malformed = transfers.findIndex(isMalformed)
  const names = transfers.map(({ bizId }) => bizId)
  const at =
    malformed >= 0 ? malformed : names.findIndex((bizId, place) => bizId !== undefined && names.indexOf(bizId) < place)
  return at >= 0 ? at : undefined
}

/** Whether a request is S012 in every state. */
export function isMalformed(request: Request): boolean {
  switch (request.kind) {
    case 'batch':
      return request.transfers.length === 0 || malformedIndex(request) !== undefined
    case 'transfer':
      return isMalformedAmount(request.amount, request.currency) || isIncomplete(request)
    case 'hold': {
      const { amount, currency, expiresInSeconds } = request
      return isMalformedAmount(amount, currency) || expiresInSeconds < 1 || expiresInSeconds > longestHold
    }
    case 'reversal':
      return isMalformedAmount(request.amount, request.currency)
    // The decimals are those of the wallet, which must exist.
    case 'deposit':
    case 'withdrawal':
      return isMalformedAmount(request.amount) || isIncomplete(request)
    case 'read':
      return request.what === 'statement' && request.from > request.to
    default:
      return false
  }
}

export function isMalformedAmount(amount: string, currency?: Currency): boolean {
  if (!/^(0|[1-9]\d*)(\.\d+)?$/.test(amount) || !/[1-9]/.test(amount)) return true
  const [whole = '', fraction = ''] = amount.split('.')
  return whole.length + fraction.length > 38 || (currency !== undefined && fraction.length > currencies[currency])
}

function isIncomplete({ holdId, holdRemainder }: Draw): boolean {
  return holdRemainder !== undefined && holdId === undefined
}
