import { z } from 'zod'

/** The `typ` of a receipt's header, so that no other signed text is mistaken for a receipt. */
export const receiptType = 'wallet-receipt+jwt'

/** A flow of the transfer. `mac`: its MAC in the ledger, in base64url. */
const receiptFlow = z.strictObject({ sequence: z.int(), mac: z.string() })

/** What a receipt says, in this order. Times are ISO 8601 in UTC with milliseconds; `amount` is the text that was sent. */
export const receiptClaims = z.strictObject({
  workspaceId: z.string(),
  transferId: z.string(),
  bizId: z.string(),
  amount: z.string(),
  currency: z.string(),
  sourceWalletId: z.string(),
  targetWalletId: z.string(),
  completedAt: z.string(),
  position: z.int(),
  reversesTransferId: z.string().nullable(),
  source: receiptFlow,
  target: receiptFlow,
})
export type ReceiptClaims = z.infer<typeof receiptClaims>

/** A compact JWS (RFC 7515) with EdDSA (RFC 8037) over `receiptClaims`. */
export const transferReceipt = z.object({ receipt: z.string() })

/** A public key as a JWK (RFC 8037). */
export const receiptKey = z.object({
  kty: z.literal('OKP'),
  crv: z.literal('Ed25519'),
  x: z.string(),
  kid: z.string(),
  use: z.literal('sig'),
  alg: z.literal('EdDSA'),
})
/** The public keys of receipts (RFC 7517). The first one is that of the key that signs now. */
export const receiptKeys = z.object({ keys: z.array(receiptKey) })
export type ReceiptKeys = z.infer<typeof receiptKeys>

/** Longer than any receipt. */
export const maxReceiptLength = 8_192

export const checkReceiptInput = z.object({ receipt: z.string().max(maxReceiptLength) })

/** The result of checking a receipt. With the first three, it is not genuine. */
export const receiptVerdicts = [
  /** It is not a compact JWS of the type of receipts. */
  'MALFORMED',
  /** It was signed with a key that this service does not have. */
  'UNKNOWN_KEY',
  /** It was changed, or signed with another key of the same ID. */
  'WRONG_SIGNATURE',
  /** It is genuine, and the ledger says the same. */
  'CONFIRMED',
  /** It is genuine, but its transfer does not exist: an earlier copy of the database was restored, or rows were removed. */
  'TRANSFER_MISSING',
  /** It is genuine, but the ledger says something else. */
  'TRANSFER_DIFFERENT',
  /** It is genuine, but the flows of the transfer were modified outside the service. */
  'TRANSFER_MODIFIED',
] as const
export type ReceiptVerdict = (typeof receiptVerdicts)[number]

/** `claims`: of a genuine receipt. */
export const receiptCheck = z.object({ verdict: z.enum(receiptVerdicts), claims: receiptClaims.nullable() })
export type ReceiptCheck = z.infer<typeof receiptCheck>
