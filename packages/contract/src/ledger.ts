import { z } from 'zod'
import { reason } from './text.ts'

/**
 * The rules that a verification checks, in the order of a report: first those that only somebody with access to the database
 * can break. A violation names the broken rule.
 */
export const ledgerRules = {
  'checkpoint-wallet': 'A wallet in the checkpoint still exists.',
  'checkpoint-sequence': 'A wallet still has the flows that it had at the checkpoint.',
  'checkpoint-head': 'The last flow at the checkpoint still has the MAC in the checkpoint.',
  'checkpoint-revision': 'A row in the checkpoint still exists, and its revision is not lower.',
  'checkpoint-journal':
    'The event log has not become shorter, and its last journal entry at the checkpoint still has the same MAC.',
  'checkpoint-audit': 'The last audit entry at the checkpoint still has the MAC in the checkpoint.',
  'verified-log': 'The event log continues that of the last verification.',
  'verified-wallets': 'The flows up to the last verification have left each wallet as they had then.',
  'verified-audit': 'The audit up to the last verification is what it was then, except for deposits and withdrawals.',
  'database-object': 'Tables, constraints, triggers and functions are exactly those that the migrations create.',
  'database-grant':
    "The service's role has exactly the rights that the migration step grants, and no other role may write.",
  'database-role': "Only the service's role and the roles that DATABASE_WRITERS names can write to the database.",
  'database-row': 'The rows that the migration step writes are as it writes them, and the ledger has one chain key.',
  'database-setting': "No setting of the service's role or the database changes the meaning of statements.",
  'database-read': 'Every table can be read completely.',
  'flow-sequence': 'The flows of a wallet are numbered 1…n, without gaps or repetitions.',
  'flow-order-count': "Each flow counts the wallet's transfers between wallets up to itself.",
  'flow-wallet': 'A flow belongs to a wallet of its workspace.',
  'flow-currency': 'A flow, its wallet and its transfer have the same currency, which is in the table of currencies.',
  'flow-amount': 'An amount is above zero and has no more decimals than its currency.',
  'flow-balance': 'balance_after is that of the previous flow, plus or minus the amount.',
  'flow-floor': "The balance of a customer's wallet is never below zero.",
  'flow-time': 'Flows of a wallet never go back in time.',
  'flow-format': 'The MAC of a flow begins with a known format version.',
  'flow-chain': 'The MAC of a flow matches its content, its transfer and the previous flow.',
  'wallet-sequence': "A wallet's sequence is the number of its flows.",
  'wallet-order-count': "A wallet's order_count is the number of its transfers between wallets.",
  'wallet-hold-count': "A wallet's hold_count is the number of its holds.",
  'wallet-held': "A customer's wallet does not hold more than its balance.",
  'wallet-balance': "A wallet's balance is the sum of its flows, and its last balance_after.",
  'wallet-head': "A wallet's head is the MAC of its last flow.",
  'wallet-number': "The customers' wallets of a workspace are numbered 1…w.",
  'wallet-external': 'A workspace has exactly one EXTERNAL wallet in each of its currencies.',
  'wallet-time': 'Numbered wallets of a workspace never go back in time.',
  'wallet-mac': "A wallet's MAC matches its row.",
  'transfer-wallets': 'Source and target of a transfer are different wallets.',
  'transfer-type': 'A deposit comes from the EXTERNAL wallet, a withdrawal goes to it, a transfer does not touch it.',
  'transfer-order-count': "Each transfer counts the workspace's transfers between wallets up to itself.",
  'transfer-time': 'A transfer is never earlier than the event before it.',
  'transfer-id':
    "A transfer's ID is a UUIDv7 whose last bit is 0, so that its flows and its event share no ID with others.",
  'transfer-biz-id': 'A bizId names one transfer of its workspace.',
  reversal:
    'A reversal comes after the transfer that it reverses, between the same wallets in the opposite direction, in the same currency; all reversals of a transfer are at most its amount.',
  batch: 'The transfers of a batch have contiguous positions and one time, and their batch_id names the first of them.',
  'log-position': 'The events of a workspace, which are its transfers and journal entries, have the positions 1…n.',
  'journal-order-count': "Each journal entry counts the workspace's transfers between wallets before itself.",
  'journal-id': "A journal entry's ID is a UUIDv7 whose last bit is 1, so that it is not that of a transfer.",
  'journal-time': 'A journal entry is never earlier than the event before it.',
  'journal-chain': 'The MAC of a journal entry matches its content and the previous entry.',
  'wallet-journal': "A customer's wallet was created by its first journal entry, and has the status of its last one.",
  'journal-head': "A ledger's journal_head is the MAC of its last journal entry.",
  'hold-number': 'The holds of a workspace are numbered 1…h, and those of a wallet as well.',
  'hold-time': 'Numbered holds of a workspace never go back in time.',
  'hold-sum':
    "A wallet's held is the sum of what remains of its open holds, and held_until is not after the first of them expires.",
  'hold-captured': 'What is captured of a hold is the sum of its captures, each from its wallet and before it expires.',
  'hold-life':
    'A hold has one creation and at most one end, and its status, times and amounts are those of its events.',
  'hold-mac': "A hold's MAC matches its row.",
  'limit-mac': "A limit's MAC matches its row.",
  'limit-spent': 'What a limit counts is the sum of the transfers of the last day since it began to count.',
  'limit-exceeded':
    'Since a limit began to count, no transfer exceeds what it allowed then, for each transfer and each day.',
  'webhook-mac': "A webhook's MAC matches its row.",
  'webhook-position': "A webhook's position is not after the last event of its workspace.",
  'webhook-attempt': "A webhook's lease and the wait for its next attempt end within two hours.",
  'workspace-ledger': 'Every workspace has a ledger. Every wallet and every ledger belongs to a workspace.',
  'ledger-wallet-count': "A ledger's wallet_count is the number of its customers' wallets.",
  'ledger-order-count': "A ledger's order_count is the number of its transfers between wallets.",
  'ledger-hold-count': "A ledger's hold_count is the number of its holds.",
  'ledger-limit-count': "A ledger's limit_count is the number of its limits.",
  'ledger-position': "A ledger's position is that of its last event.",
  'ledger-time': "A ledger's last_posted_at is not before its last event.",
  'workspace-mac': "A workspace's MAC matches its row.",
  'ledger-mac': "A ledger's MAC matches its row.",
  'workspace-place': 'A workspace was created in the place that has it, or has moved there.',
  'move-mac': "The MAC of a workspace's last move matches its row.",
  'member-mac': "A member's MAC matches its row.",
  'key-mac': "An API key's MAC matches its row.",
  'operator-mac': "An operator's MAC matches its row.",
  'audit-position': 'The audit entries of a workspace are numbered 1…n in order.',
  'audit-chain': 'The MAC of an audit entry matches its content and the previous entry.',
  'audit-head': 'The last audit entry is the one that the head names.',
  'audit-target':
    'Every key, limit, member, operator, wallet, webhook, workspace, deposit and withdrawal that the audit says was created has a row.',
  'workspace-audit': 'A workspace has the name in the audit, and is deleted if the audit says so.',
  'member-audit': 'A user is a member of a workspace if the last action on the membership in the audit says so.',
  'key-audit':
    'An API key has the status, scopes, addresses, expiry and secret version of the last action on it in the audit.',
  'operator-audit': 'An operator has the role, status, expiry and token version of the last action on it in the audit.',
  'wallet-audit':
    "A customer's wallet has the name, bizId, currency and status in the audit, and was frozen by the same side.",
  'limit-audit': 'A limit has the amounts of the last action on it in the audit, and counts from the same position.',
  'webhook-audit':
    'A webhook has the bizId, URL, types, concurrency, status and secret version of the last action on it in the audit.',
  'transfer-audit': 'Every deposit and withdrawal is in the audit, with the same wallet, bizId, amount and currency.',
  'workspace-sum': 'The flows of a workspace and currency sum to zero over all wallets.',
} as const satisfies Record<string, string>
export type LedgerRule = keyof typeof ledgerRules

/**
 * Rules that do not prevent `ledger repair`: it rebuilds ledger and wallet rows from transfers, holds and journal, and leaves
 * limits as they are, because operators can set them again.
 */
const repairableRules: readonly LedgerRule[] = [
  'database-role',
  'wallet-sequence',
  'wallet-order-count',
  'wallet-hold-count',
  'wallet-held',
  'wallet-balance',
  'wallet-head',
  'wallet-mac',
  'wallet-audit',
  'wallet-journal',
  'ledger-mac',
  'ledger-wallet-count',
  'ledger-order-count',
  'ledger-hold-count',
  'ledger-limit-count',
  'ledger-position',
  'ledger-time',
  'journal-head',
  'hold-sum',
  'limit-audit',
  'limit-mac',
  'limit-spent',
  'limit-exceeded',
]

/**
 * Rules that entries break that somebody else has appended to the audit, which nobody can remove. A repair leaves them, because it
 * reads genuine entries only, and does not reopen the workspace.
 */
const forgedAuditRules: readonly LedgerRule[] = ['audit-position', 'audit-chain']

/** Whether a broken rule prevents `ledger repair`. */
export function preventsRepair(rule: LedgerRule): boolean {
  return !repairableRules.includes(rule) && !forgedAuditRules.includes(rule)
}

/** Whether forged audit entries are all that is wrong. */
export function isForgedAuditOnly(rules: readonly LedgerRule[]): boolean {
  return rules.length > 0 && rules.every(rule => forgedAuditRules.includes(rule))
}

/** A broken rule, with the public IDs (and the sequence) of what breaks it. */
export const violation = z.object({
  rule: z.enum(Object.keys(ledgerRules) as [LedgerRule, ...LedgerRule[]]),
  message: z.string(),
  ids: z.record(z.string(), z.union([z.string(), z.number()])),
})
export type Violation = z.infer<typeof violation>

/** Maximum number of violations of one rule in a report. Further ones are counted. */
export const listedViolations = 20

/** A checkpoint whose parts were all uploaded. The caller chooses the upload ID. `places`: how many it covers. */
export const uploadedCheckpoint = z.object({ uploadId: z.uuid(), checkpointId: z.uuid(), places: z.int().min(1) })
export type UploadedCheckpoint = z.infer<typeof uploadedCheckpoint>

/** What a verification reads: everything, or what has changed since the last sound one. Core runs incremental ones itself. */
export const verificationKinds = ['WHOLE', 'INCREMENTAL'] as const
export type VerificationKind = (typeof verificationKinds)[number]

/** Verifies all workspaces or one, optionally against a checkpoint that covers the same workspaces or one of them. */
export const verifyInput = z.object({ workspaceId: z.string().optional(), checkpoint: uploadedCheckpoint.optional() })

/** The progress of a verification, or its result, which comes last. */
export type VerifyEvent =
  | { kind: 'progress'; flows: number; totalFlows: number }
  | { kind: 'result'; report: VerifyReport }

export const brokenRule = z.object({ rule: violation.shape.rule, violations: z.int() })
export type BrokenRule = z.infer<typeof brokenRule>

export function countViolations(broken: readonly BrokenRule[]): number {
  return broken.reduce((sum, { violations }) => sum + violations, 0)
}

export type VerifyReport = {
  ok: boolean
  workspaces: number
  /** Includes the hidden EXTERNAL wallets. */
  wallets: number
  transfers: number
  flows: number
  holds: number
  /** Events that are not transfers. */
  journalEntries: number
  /** Every broken rule with the number of its violations, in the order of `ledgerRules`. */
  brokenRules: BrokenRule[]
  /** The first violations of each broken rule, at most `listedViolations`, in the same order. */
  violations: Violation[]
  /** What the verification cannot judge: for the operator to compare with what the database should have. */
  notes: DatabaseNote[]
  /** Set if the verification used a checkpoint. */
  checkpoint?: CheckpointFindings
}

/** A role that can write, an extension, a publication and so on, such as `{ object: 'role ada', definition: 'superuser' }`. */
export type DatabaseNote = { object: string; definition: string }

/** The comparison with a checkpoint. A `fault` concerns the file only. Differences of the ledger are violations. */
export type CheckpointFindings = {
  checkpointId: string | null
  takenAt: string | null
  /** The workspace it covers; null for all of them. */
  workspaceId: string | null
  /** Wallets that were compared. */
  wallets: number
  /** Why the file is not a complete checkpoint of this ledger, as a sentence. Null if it is. */
  fault: string | null
}

/** A ledger that rejects postings, because core found rows that were modified outside the service. */
export const haltedLedger = z.object({ workspaceId: z.string(), reason: z.string() })
export type HaltedLedger = z.infer<typeof haltedLedger>

/** Maximum number of halted ledgers in a list. */
export const listedHalted = 1000

/** Halted ledgers in the order of their UUIDs, at most `listedHalted`, and how many there are. */
export const haltedLedgers = z.object({ ledgers: z.array(haltedLedger), total: z.int() })

/** `force` reopens the ledger even if rules are broken. */
export const reopenInput = z.object({
  workspaceId: z.string(),
  force: z.boolean().default(false),
  reason: reason.optional(),
})

/** The progress of the verification of a halted workspace, or its result, which comes last. */
export type ReopenEvent =
  | Extract<VerifyEvent, { kind: 'progress' }>
  | { kind: 'result'; reopened: boolean; report: VerifyReport }

/** `dryRun` returns the changes without making them. */
export const repairInput = z.object({
  workspaceId: z.string(),
  dryRun: z.boolean().default(false),
  reason: reason.optional(),
})

/** A row that does not match transfers, holds and journal: its columns before and after the repair. */
export type LedgerChange = {
  /** The ID of the wallet, or of the workspace of the ledger row. */
  target: string
  before: Record<string, string | number | null>
  after: Record<string, string | number | null>
}

/** Maximum number of changes in a result. The audit log has all of them. */
export const listedChanges = 100

export type RepairResult = {
  /** False for a dry run, and if flows, holds or journal are damaged: rows cannot be rebuilt from them. */
  repaired: boolean
  reopened: boolean
  changes: LedgerChange[]
  /** Changes that are not listed. */
  moreChanges: number
  /** Of the verification after the repair, or before if nothing was repaired. */
  report: VerifyReport
}
export type RepairEvent = Extract<VerifyEvent, { kind: 'progress' }> | ({ kind: 'result' } & RepairResult)

export const checkpointFormat = 1
/** Maximum number of entries of a kind in one part of a checkpoint. Small enough that checking a part never delays other calls. */
export const checkpointPartEntries = 500

const hex = /^[0-9a-f]*$/

/** The end of a wallet's chain. `head`: the MAC of its last flow in hex, empty if it has none. */
export const checkpointChain = z.strictObject({
  workspaceId: z.string(),
  walletId: z.string(),
  sequence: z.int().min(0),
  head: z.string().regex(hex).max(256),
  /** Of the wallet's row. */
  revision: z.int().min(0),
})
export type CheckpointChain = z.infer<typeof checkpointChain>

export const checkpointRowKinds = ['workspace', 'ledger', 'hold', 'limit', 'member', 'key', 'webhook'] as const

/**
 * The revision of a row. `id`: the hold, the subject and the currency of a limit, the user ID of a member, the API key or the
 * webhook; empty otherwise.
 */
export const checkpointRow = z.strictObject({
  kind: z.enum(checkpointRowKinds),
  workspaceId: z.string(),
  id: z.string(),
  revision: z.int().min(0),
})
export type CheckpointRow = z.infer<typeof checkpointRow>

/** The end of an audit log: that of a workspace, or that of actions outside workspaces. `head`: the MAC of its last entry in hex. */
export const checkpointAudit = z.strictObject({
  workspaceId: z.string().nullable(),
  position: z.int().min(1),
  head: z.string().regex(hex).length(64),
})
export type CheckpointAudit = z.infer<typeof checkpointAudit>

/** The end of a workspace's event log. `head`: the MAC of its last journal entry in hex, empty if it has none. */
export const checkpointLog = z.strictObject({
  workspaceId: z.string(),
  /** Of the last event. */
  position: z.int().min(1),
  head: z.string().regex(hex).max(64),
})
export type CheckpointLog = z.infer<typeof checkpointLog>

/**
 * One part of a checkpoint: a signed record of the heads of all chains and the revisions of all rows, for an auditor to
 * keep. The file is JSON Lines: one part per line, numbered from 0, with `last` set on the last one. `mac` is the
 * HMAC-SHA256 under the chain key, in hex, over all other fields. These include the checkpoint's ID and the part's number,
 * so that parts cannot be changed, removed, reordered or mixed. Each part can be checked on its own, so memory is constant.
 */
export const checkpointPart = z.strictObject({
  format: z.literal(checkpointFormat),
  checkpointId: z.uuid(),
  /** By the clock of the database, ISO 8601. */
  takenAt: z.iso.datetime(),
  /** The workspace it covers; null for all of them. */
  workspaceId: z.string().nullable(),
  /** The number of the place, from 0. Those of one place follow each other, in the order of the places. */
  place: z.int().min(0),
  /** From 0 in each place. */
  part: z.int().min(0),
  lastOfPlace: z.boolean(),
  /** Of the checkpoint. */
  last: z.boolean(),
  chains: z.array(checkpointChain).max(checkpointPartEntries),
  rows: z.array(checkpointRow).max(checkpointPartEntries),
  logs: z.array(checkpointLog).max(checkpointPartEntries),
  audits: z.array(checkpointAudit).max(checkpointPartEntries),
  mac: z.string().regex(hex).length(64),
})
export type CheckpointPart = z.infer<typeof checkpointPart>

export const checkpointInput = z.object({ workspaceId: z.string().optional() })

export const uploadCheckpointInput = z.object({ uploadId: z.uuid(), part: checkpointPart })

/** `genuine`: core signed exactly this part. Other parts are not stored. */
export const checkpointPartReceipt = z.object({ genuine: z.boolean() })
