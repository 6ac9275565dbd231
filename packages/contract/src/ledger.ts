import { z } from 'zod'

/** What a sound ledger keeps. A verification names the rule that it found broken. */
export const ledgerRules = {
  'flow-sequence': 'The flows of a wallet are numbered 1…n, without gap or repetition.',
  'flow-order-number': "The wallet's transfers between wallets are numbered 1…m; deposits and withdrawals are not.",
  'flow-transfer':
    'A flow belongs to a transfer, which says the same of it: wallet, direction, sequence, amount, time.',
  'flow-wallet': 'A flow belongs to a wallet of its workspace.',
  'flow-currency': 'A flow, its wallet and its transfer have one currency, which the table knows.',
  'flow-amount': 'An amount is above zero and has no more decimals than its currency.',
  'flow-balance': 'balance_after is that of the flow before, plus or minus the amount.',
  'flow-floor': "A customer's wallet is never below zero.",
  'flow-time': 'Time never runs back in a wallet.',
  'flow-format': 'The MAC of a flow begins with a known format version.',
  'flow-chain': 'The MAC of a flow follows from its content, its transfer and the flow before it.',
  'wallet-sequence': "A wallet's sequence is the number of its flows.",
  'wallet-order-count': "A wallet's order_count is the number of its transfers between wallets.",
  'wallet-balance': "A wallet's balance is the sum of its flows, and its last balance_after.",
  'wallet-head': "A wallet's head is the MAC of its last flow.",
  'wallet-number': "The customers' wallets of a workspace are numbered 1…w.",
  'wallet-external': 'A workspace has exactly one EXTERNAL wallet in each of its currencies.',
  'wallet-time': 'Time never runs back from one wallet of a workspace to the next.',
  'wallet-mac': "A wallet's MAC follows from its row.",
  'transfer-flows': 'A transfer has exactly two flows: one OUT on its source, one IN on its target.',
  'transfer-sum': 'The flows of a transfer sum to zero.',
  'transfer-type': 'A deposit comes from the EXTERNAL wallet, a withdrawal goes to it, a transfer does not touch it.',
  'transfer-number': "A workspace's transfers between wallets are numbered 1…k; the others have no number.",
  'transfer-time': 'Time never runs back from one numbered transfer to the next.',
  'transfer-biz-id': 'A bizId names one transfer of its workspace.',
  'workspace-ledger': 'Every workspace has a ledger, and every wallet and ledger a workspace.',
  'ledger-wallet-count': "A ledger's wallet_count is the number of its customers' wallets.",
  'ledger-order-count': "A ledger's order_count is the number of its transfers between wallets.",
  'ledger-time': "A ledger's last_posted_at is not before its last flow.",
  'workspace-mac': "A workspace's MAC follows from its row.",
  'ledger-mac': "The MAC of a workspace's ledger follows from its row.",
  'member-mac': "A member's MAC follows from its row.",
  'key-mac': "An API key's MAC follows from its row.",
  'audit-position': 'The acts in the audit are numbered 1…n in the order of their list, in each workspace.',
  'audit-chain': 'The MAC of an act in the audit follows from its content and the act before it.',
  'audit-head': 'The audit ends with the act that its head names.',
  'workspace-sum': 'The flows of a workspace and currency sum to zero over all wallets.',
  'database-object':
    'Tables, constraints, triggers and functions are those that the migrations make, and there are no others.',
  'database-grant': "The service's role may do what the migration step grants, and nobody else may write.",
  'database-setting': "Nothing is set for the service's role or the database that changes what a statement means.",
  'database-read': 'Every table can be read to its end.',
  'seal-wallet': 'A wallet that was sealed still exists.',
  'seal-sequence': 'A wallet still has the flows that it had when it was sealed.',
  'seal-head': 'The last flow at the time of a seal still bears the MAC that was sealed.',
  'seal-revision': 'A row that was sealed still exists, and its revision has not run back.',
  'seal-audit': 'The last act in the audit at the time of a seal still bears the MAC that was sealed.',
} as const satisfies Record<string, string>
export type LedgerRule = keyof typeof ledgerRules

/** What a ledger row and its wallets' rows say of the entries: it can be made from them again. */
export const repairableRules: readonly LedgerRule[] = [
  'wallet-sequence',
  'wallet-order-count',
  'wallet-balance',
  'wallet-head',
  'wallet-mac',
  'ledger-mac',
  'ledger-wallet-count',
  'ledger-order-count',
  'ledger-time',
]

/** A broken rule, with the public ids (and the sequence) of what breaks it. */
export const violation = z.object({
  rule: z.enum(Object.keys(ledgerRules) as [LedgerRule, ...LedgerRule[]]),
  message: z.string(),
  ids: z.record(z.string(), z.union([z.string(), z.number()])),
})
export type Violation = z.infer<typeof violation>

/** The most violations that are listed; the rest is counted. */
export const listedViolations = 100

/** A seal whose parts were all uploaded, under an id of the caller's own. */
export const uploadedSeal = z.object({ uploadId: z.uuid(), sealId: z.uuid() })
export type UploadedSeal = z.infer<typeof uploadedSeal>

/** Of everything, or of one workspace; against a seal of the same scope, or of one workspace of it. */
export const verifyInput = z.object({ workspaceId: z.string().optional(), seal: uploadedSeal.optional() })

/** How far a verification has come, or its result, which ends it. */
export type VerifyEvent =
  | { kind: 'progress'; flows: number; totalFlows: number }
  | { kind: 'result'; report: VerifyReport }

export type VerifyReport = {
  ok: boolean
  workspaces: number
  /** The hidden EXTERNAL ones included. */
  wallets: number
  transfers: number
  flows: number
  violations: Violation[]
  /** Violations found beyond those listed. */
  more: number
  /** Every rule that is broken, listed or not. */
  brokenRules: LedgerRule[]
  /** When a seal was given. */
  seal?: SealFindings
}

/** What became of a seal. A `fault` of the file says nothing about the ledger; changes of the ledger are violations. */
export type SealFindings = {
  sealId: string | null
  sealedAt: string | null
  /** Sealed alone, or null when every workspace was. */
  workspaceId: string | null
  /** Sealed wallets that were compared with the replayed chains. */
  wallets: number
  /** Why the file is not a whole seal of this ledger, as a sentence. Null when it is. */
  fault: string | null
}

/** A ledger that takes no postings, because a core found that somebody, or a bug, wrote past it. */
export const haltedLedger = z.object({ workspaceId: z.string(), reason: z.string() })
export type HaltedLedger = z.infer<typeof haltedLedger>

/** `force` opens it although it breaks its rules. */
export const reopenInput = z.object({ workspaceId: z.string(), force: z.boolean().default(false) })

/** The verification of the halted workspace, and what came of it. */
export type ReopenEvent =
  | Extract<VerifyEvent, { kind: 'progress' }>
  | { kind: 'result'; reopened: boolean; report: VerifyReport }

/** `dryRun` shows what would be changed, and changes nothing. */
export const repairInput = z.object({ workspaceId: z.string(), dryRun: z.boolean().default(false) })

/** A row that does not say what the entries say, and what they say. */
export type LedgerChange = {
  /** A wallet, or the workspace whose counters they are. */
  target: string
  before: Record<string, string | number>
  after: Record<string, string | number>
}

/** The most changes that are listed; the audit has them all. */
export const listedChanges = 100

export type RepairResult = {
  /** False when it was asked to change nothing, and when entries are damaged: no row can be made from those. */
  repaired: boolean
  reopened: boolean
  changes: LedgerChange[]
  /** Changes beyond those listed. */
  moreChanges: number
  /** Of the verification before, or, once repaired, after. */
  report: VerifyReport
}
export type RepairEvent = Extract<VerifyEvent, { kind: 'progress' }> | ({ kind: 'result' } & RepairResult)

export const sealFormat = 1
/** Entries in one part of a seal: small enough that checking a part never holds up other calls. */
export const sealPartEntries = 500

const hex = /^[0-9a-f]*$/

/** How far a wallet's chain had come. `head` is the MAC of its last flow in hex, empty before the first. */
export const sealedChain = z.strictObject({
  workspaceId: z.string(),
  walletId: z.string(),
  sequence: z.int().min(0),
  head: z.string().regex(hex).max(256),
  /** How often the wallet's row was written. */
  revision: z.int().min(0),
})
export type SealedChain = z.infer<typeof sealedChain>

export const sealedRowKinds = ['workspace', 'ledger', 'member', 'key'] as const

/** How often a row that decides about access was written. `id`: the member's user id, or the API key; empty otherwise. */
export const sealedRow = z.strictObject({
  kind: z.enum(sealedRowKinds),
  workspaceId: z.string(),
  id: z.string(),
  revision: z.int().min(0),
})
export type SealedRow = z.infer<typeof sealedRow>

/** How far an audit had come: that of a workspace, or of acts on none. `head` is the MAC of its last act in hex. */
export const sealedAudit = z.strictObject({
  workspaceId: z.string().nullable(),
  position: z.int().min(1),
  head: z.string().regex(hex).length(64),
})
export type SealedAudit = z.infer<typeof sealedAudit>

/**
 * One part of a seal: a signed statement of the heads of all chains and the revisions of all rows, for an auditor to keep. The file is JSON Lines,
 * a part on each line, numbered from 0; the last one says so. `mac` is HMAC-SHA256 under the chain key, in hex, over
 * everything else in the part: with the seal's id and the part's place in it, so that parts cannot be changed,
 * dropped, reordered or mixed. Each part can be checked by itself: a seal of any size needs constant memory.
 */
export const sealPart = z.strictObject({
  format: z.literal(sealFormat),
  sealId: z.uuid(),
  /** The database's clock, ISO 8601. */
  sealedAt: z.iso.datetime(),
  /** Sealed alone, or null when every workspace was. */
  workspaceId: z.string().nullable(),
  part: z.int().min(0),
  last: z.boolean(),
  chains: z.array(sealedChain).max(sealPartEntries),
  rows: z.array(sealedRow).max(sealPartEntries),
  audits: z.array(sealedAudit).max(sealPartEntries),
  mac: z.string().regex(hex).length(64),
})
export type SealPart = z.infer<typeof sealPart>

export const sealInput = z.object({ workspaceId: z.string().optional() })

export const uploadSealInput = z.object({ uploadId: z.uuid(), part: sealPart })

/** `genuine`: core signed exactly this part. Only then was it kept. */
export const sealPartReceipt = z.object({ genuine: z.boolean() })
