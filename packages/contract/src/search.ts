import { z } from 'zod'
import { storableTime } from './api-keys.ts'
import { hold } from './holds.ts'
import { currencyCode, decimal } from './money.ts'
import { textFilter } from './pages.ts'
import { plainText } from './text.ts'
import { transferTypes, walletStatuses } from './wallets.ts'

/**
 * What operators search, over all workspaces. Results are complete: a search that takes longer than `searchLimitMs` fails with S012
 * TOO_EXPENSIVE. `next`: the `after` of the next page; null on the last page.
 */
export const searchLimitMs = 2_000

const limit = z.int().min(1).max(500).default(50)
const id = z.string().max(64)
/** `from` is inclusive, `to` exclusive. */
const range = { from: storableTime.optional(), to: storableTime.optional() }
const exactText = plainText(128).min(1, 'EMPTY')
const nonNegative = decimal.refine(value => !value.isNegative(), { error: 'NOT_AN_AMOUNT' })

/** Newest first. `namePrefix` is case-sensitive. */
export const listWorkspacesInput = z.object({
  namePrefix: textFilter,
  deleted: z.boolean().default(false),
  after: id.optional(),
  limit,
})
export type WorkspaceListing = z.infer<typeof listWorkspacesInput>

export const workspaceRecord = z.object({
  workspaceId: z.string(),
  name: z.string(),
  createdAt: z.date(),
  deletedAt: z.date().nullable(),
  /** HALTED: it rejects postings, because rows were modified outside the service. CLOSED: the workspace was deleted. MOVING: it is stopped until it has arrived in another place. */
  ledger: z.enum(['OPEN', 'CLOSED', 'HALTED', 'MOVING']),
  haltReason: z.string().nullable(),
  wallets: z.int(),
  /** Transfers between wallets. */
  transfers: z.int(),
  /** Whether its row, or that of its ledger, was modified outside the service. */
  isModified: z.boolean(),
})
export type WorkspaceRecord = z.infer<typeof workspaceRecord>
export const workspacePage = z.object({ workspaces: z.array(workspaceRecord), next: z.string().nullable() })
export type WorkspacePage = z.infer<typeof workspacePage>

export const workspaceDetails = workspaceRecord.extend({
  members: z.int(),
  /** Keys that are not deleted. */
  apiKeys: z.int(),
  /** The sum of all wallets in each currency: what was deposited and not withdrawn. */
  funds: z.array(z.object({ currency: z.string(), balance: decimal })),
})
export type WorkspaceDetails = z.infer<typeof workspaceDetails>

/** In the order of user IDs. `removed`: also those who are no longer members. */
export const listMembersInput = z.object({
  workspaceId: id,
  removed: z.boolean().default(false),
  // Longer than a user ID can be, because the page before may end with a row that somebody else wrote.
  after: plainText(1024).optional(),
  limit,
})
export type MemberListing = z.infer<typeof listMembersInput>

export const memberRecord = z.object({
  userId: z.string(),
  createdAt: z.date(),
  removedAt: z.date().nullable(),
  isModified: z.boolean(),
})
export type MemberRecord = z.infer<typeof memberRecord>
export const memberPage = z.object({ members: z.array(memberRecord), next: z.string().nullable() })
export type MemberPage = z.infer<typeof memberPage>

/** Wallets that match all of these, newest first. Prefixes are case-sensitive; the range of the balance includes both ends. */
export const searchWalletsInput = z.object({
  workspaceId: id.optional(),
  walletId: id.optional(),
  bizId: textFilter,
  namePrefix: exactText.optional(),
  currency: currencyCode.optional(),
  status: z.enum(walletStatuses).optional(),
  balanceFrom: decimal.optional(),
  balanceTo: decimal.optional(),
  after: id.optional(),
  limit,
})
export type WalletSearch = z.infer<typeof searchWalletsInput>

export const foundWallet = z.object({
  workspaceId: z.string(),
  walletId: z.string(),
  bizId: z.string().nullable(),
  name: z.string(),
  currency: z.string(),
  status: z.enum(walletStatuses),
  frozenBy: z.enum(['WORKSPACE', 'OPERATOR']).nullable(),
  balance: decimal,
  held: decimal,
  createdAt: z.date(),
  updatedAt: z.date(),
  isModified: z.boolean(),
})
export type FoundWallet = z.infer<typeof foundWallet>
export const foundWallets = z.object({ wallets: z.array(foundWallet), next: z.string().nullable() })
export type FoundWallets = z.infer<typeof foundWallets>

/**
 * Transfers, deposits and withdrawals that match all of these, newest first. `from` is inclusive, `to` exclusive; the range of the
 * amount includes both ends. Without a workspace, a wallet or an exact name, give a short range of time.
 */
export const searchTransfersInput = z.object({
  workspaceId: id.optional(),
  walletId: id.optional(),
  type: z.enum(transferTypes).optional(),
  transferId: id.optional(),
  bizId: textFilter,
  reference: textFilter,
  remarkPrefix: plainText(256).min(1, 'EMPTY').optional(),
  currency: currencyCode.optional(),
  amountFrom: nonNegative.optional(),
  amountTo: nonNegative.optional(),
  /** As the audit has it: `key:ak_…`, `operator:name` or `role:name`. */
  actor: exactText.optional(),
  requestId: textFilter,
  ...range,
  after: z.string().max(128).optional(),
  limit,
})
export type TransferSearch = z.infer<typeof searchTransfersInput>

export const transferRecord = z.object({
  workspaceId: z.string(),
  transferId: z.string(),
  type: z.enum(transferTypes),
  bizId: z.string().nullable(),
  reference: z.string().nullable(),
  remark: z.string().nullable(),
  amount: decimal,
  currency: z.string(),
  /** Null for a deposit, which comes from outside. */
  sourceWalletId: z.string().nullable(),
  /** Null for a withdrawal. */
  targetWalletId: z.string().nullable(),
  holdId: z.string().nullable(),
  reversesTransferId: z.string().nullable(),
  batchId: z.string().nullable(),
  actor: z.string(),
  requestId: z.string(),
  clientAddress: z.string().nullable(),
  /** The place among the events of the workspace. */
  position: z.int(),
  createdAt: z.date(),
})
export type TransferRecord = z.infer<typeof transferRecord>
export const foundTransfers = z.object({ transfers: z.array(transferRecord), next: z.string().nullable() })
export type FoundTransfers = z.infer<typeof foundTransfers>

/** Deposits and withdrawals, newest first: a search with fewer conditions. */
export const listFundingsInput = searchTransfersInput
  .pick({ workspaceId: true, walletId: true, from: true, to: true, after: true, limit: true })
  .extend({ type: z.enum(['DEPOSIT', 'WITHDRAWAL']).optional() })
export type FundingListing = z.infer<typeof listFundingsInput>

/** By transferId, or by the bizId and the workspace. A transferId that several workspaces use needs the workspace, too. */
export const transferNameInput = z.object({ workspaceId: id.optional(), name: plainText(64).min(1) })
export type TransferName = z.infer<typeof transferNameInput>

/** One side of a transfer. */
export const tracedFlow = z.object({
  /** Null for the side outside the workspace's own wallets, of a deposit or a withdrawal. */
  walletId: z.string().nullable(),
  walletName: z.string().nullable(),
  sequence: z.int(),
  balanceAfter: decimal.nullable(),
  /** Whether its MAC matches its content, the transfer and the flow before it on the wallet. */
  isGenuine: z.boolean(),
})
export type TracedFlow = z.infer<typeof tracedFlow>

/** A transfer and all that belongs to it. Lists have at most `tracedLimit` entries. */
export const tracedTransfer = z.object({
  transfer: transferRecord,
  source: tracedFlow,
  target: tracedFlow,
  /** Reversals of this transfer, in order, and the sum of all. */
  reversals: z.array(transferRecord),
  reversedAmount: decimal,
  /** The transfer that this one reverses. */
  reverses: transferRecord.nullable(),
  hold: hold.nullable(),
  /** All transfers of its batch, in order. */
  batch: z.array(transferRecord),
  /** The IDs of the reversals, of the reversed transfer and of those of the batch that were written outside the service. */
  modified: z.array(z.string()),
  /** A signed receipt; null for deposits, withdrawals, and transfers that are not genuine or have a last reversal that is not. */
  receipt: z.string().nullable(),
})
export type TracedTransfer = z.infer<typeof tracedTransfer>
export const tracedLimit = 100

/** One text: an ID of any kind, a bizId, a reference, a request ID or a user ID, which must be given in full. */
export const findInput = z.object({ text: exactText })

export const foundKinds = [
  'workspace',
  'member',
  'apiKey',
  'wallet',
  'transfer',
  'hold',
  'event',
  'webhook',
  'operator',
  'refusal',
  'audit',
] as const
export type FoundKind = (typeof foundKinds)[number]

/** Something that the text names. */
export const foundObject = z.object({
  kind: z.enum(foundKinds),
  id: z.string(),
  /** Null for operators, refused calls and actions on no workspace. */
  workspaceId: z.string().nullable(),
  /** By what it was found, such as `bizId`. */
  by: z.string(),
  /** What a person recognizes it by: a name, a type, an amount. */
  summary: z.string(),
})
export type FoundObject = z.infer<typeof foundObject>

/** `searched`: what was compared with the text. `found` has everything that matches in those that are complete. */
export const findResult = z.object({
  found: z.array(foundObject),
  searched: z.array(
    z.object({
      kind: z.enum(foundKinds),
      by: z.string(),
      /** False if it took too long, or has more than `foundLimit` matches, of which these are the newest. */
      isComplete: z.boolean(),
    }),
  ),
})
export type FindResult = z.infer<typeof findResult>
export const foundLimit = 20
