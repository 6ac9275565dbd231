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
  'audit-position': 'The actions in the audit are numbered 1…n in the order of their list, in each workspace.',
  'audit-chain': 'The MAC of an action in the audit follows from its content and the action before it.',
  'audit-head': 'The audit ends with the action that its head names.',
  'audit-target':
    'Every key, member, wallet and workspace that the audit says was created has a row, and every deposit and withdrawal.',
  'workspace-audit': 'A workspace has the name that the audit says, and is deleted if the audit says so.',
  'member-audit': 'A user is a member of a workspace if the last action on the membership in the audit says so.',
  'key-audit':
    'An API key has the status, scopes, addresses, expiry and secret version of the last action on it in the audit.',
  'wallet-audit': "A customer's wallet has the name, currency and status that the audit says.",
  'transfer-audit': 'Every deposit and withdrawal is in the audit, with the same wallet, bizId, amount and currency.',
  'workspace-sum': 'The flows of a workspace and currency sum to zero over all wallets.',
  'database-object':
    'Tables, constraints, triggers and functions are those that the migrations make, and there are no others.',
  'database-grant': "The service's role may do what the migration step grants, and nobody else may write.",
  'database-setting': "Nothing is set for the service's role or the database that changes what a statement means.",
  'database-read': 'Every table can be read to its end.',
  'checkpoint-wallet': 'A wallet in the checkpoint still exists.',
  'checkpoint-sequence': 'A wallet still has the flows that it had at the checkpoint.',
  'checkpoint-head': 'The last flow at the checkpoint still has the MAC in the checkpoint.',
  'checkpoint-revision': 'A row in the checkpoint still exists, and its revision is not lower.',
  'checkpoint-audit': 'The last action in the audit at the checkpoint still has the MAC in the checkpoint.',
} as const satisfies Record<string, string>
export type LedgerRule = keyof typeof ledgerRules

/** What a ledger row and its wallets' rows say of the entries: it can be made from them again. */
export const repairableRules: readonly LedgerRule[] = [
  'wallet-sequence',
  'wallet-order-count',
  'wallet-balance',
  'wallet-head',
  'wallet-mac',
  'wallet-audit',
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

/** A checkpoint whose parts were all uploaded, under an id of the caller's own. */
export const uploadedCheckpoint = z.object({ uploadId: z.uuid(), checkpointId: z.uuid() })
export type UploadedCheckpoint = z.infer<typeof uploadedCheckpoint>

/** Of everything, or of one workspace; against a checkpoint of the same scope, or of one workspace of it. */
export const verifyInput = z.object({ workspaceId: z.string().optional(), checkpoint: uploadedCheckpoint.optional() })

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
  /** When a checkpoint was given. */
  checkpoint?: CheckpointFindings
}

/** What became of a checkpoint. A `fault` of the file says nothing about the ledger; changes of the ledger are violations. */
export type CheckpointFindings = {
  checkpointId: string | null
  takenAt: string | null
  /** The workspace it covers; null for all of them. */
  workspaceId: string | null
  /** Wallets of the checkpoint that were compared with the replayed chains. */
  wallets: number
  /** Why the file is not a whole checkpoint of this ledger, as a sentence. Null when it is. */
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

export const checkpointFormat = 1
/** Entries in one part of a checkpoint: small enough that checking a part never holds up other calls. */
export const checkpointPartEntries = 500

const hex = /^[0-9a-f]*$/

/** How far a wallet's chain had come. `head` is the MAC of its last flow in hex, empty before the first. */
export const checkpointChain = z.strictObject({
  workspaceId: z.string(),
  walletId: z.string(),
  sequence: z.int().min(0),
  head: z.string().regex(hex).max(256),
  /** How often the wallet's row was written. */
  revision: z.int().min(0),
})
export type CheckpointChain = z.infer<typeof checkpointChain>

export const checkpointRowKinds = ['workspace', 'ledger', 'member', 'key'] as const

/** How often a row that decides about access was written. `id`: the member's user id, or the API key; empty otherwise. */
export const checkpointRow = z.strictObject({
  kind: z.enum(checkpointRowKinds),
  workspaceId: z.string(),
  id: z.string(),
  revision: z.int().min(0),
})
export type CheckpointRow = z.infer<typeof checkpointRow>

/** How far an audit had come: that of a workspace, or of actions on none. `head` is the MAC of its last action in hex. */
export const checkpointAudit = z.strictObject({
  workspaceId: z.string().nullable(),
  position: z.int().min(1),
  head: z.string().regex(hex).length(64),
})
export type CheckpointAudit = z.infer<typeof checkpointAudit>

/**
 * One part of a checkpoint: a signed statement of the heads of all chains and the revisions of all rows, for an auditor to keep. The file is JSON Lines,
 * a part on each line, numbered from 0; the last one says so. `mac` is HMAC-SHA256 under the chain key, in hex, over
 * everything else in the part: with the checkpoint's id and the part's place in it, so that parts cannot be changed,
 * dropped, reordered or mixed. Each part can be checked by itself: a checkpoint of any size needs constant memory.
 */
export const checkpointPart = z.strictObject({
  format: z.literal(checkpointFormat),
  checkpointId: z.uuid(),
  /** The database's clock, ISO 8601. */
  takenAt: z.iso.datetime(),
  /** The workspace it covers; null for all of them. */
  workspaceId: z.string().nullable(),
  part: z.int().min(0),
  last: z.boolean(),
  chains: z.array(checkpointChain).max(checkpointPartEntries),
  rows: z.array(checkpointRow).max(checkpointPartEntries),
  audits: z.array(checkpointAudit).max(checkpointPartEntries),
  mac: z.string().regex(hex).length(64),
})
export type CheckpointPart = z.infer<typeof checkpointPart>

export const checkpointInput = z.object({ workspaceId: z.string().optional() })

export const uploadCheckpointInput = z.object({ uploadId: z.uuid(), part: checkpointPart })

/** `genuine`: core signed exactly this part. Only then was it kept. */
export const checkpointPartReceipt = z.object({ genuine: z.boolean() })
