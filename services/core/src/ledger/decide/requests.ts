import { DomainError, type IdKind, type TransferType, type Uuid } from '@workspace-wallet/contract'
import { coreActor } from '../../audit/actors.ts'
import type { HoldRow } from '../../database/tables/hold.ts'
import type { Transfer } from '../chain/transfer.ts'

/** A wallet that a command names: its UUID, or the text that was sent if that is not the ID of a wallet. */
export type WalletRef = Uuid<'wallet'> | { malformed: string }

/** Whether two names are the same, malformed ones too: a transfer to the wallet it comes from is T004, before W001. */
export function isSameWallet(a: WalletRef, b: WalletRef): boolean {
  return typeof a === 'object' && typeof b === 'object' ? a.malformed === b.malformed : a === b
}

/** What names a transfer or a hold: its UUID, or its bizId. */
export type Name<Kind extends IdKind = IdKind> = { id: Uuid<Kind> } | { bizId: string }

/** Who sent a command, for its row. */
type Caller = { actor: string; requestId: string; clientAddress: string | null }

/** Core itself as the caller: it expires holds. */
export const coreItself: Caller = { actor: coreActor, requestId: 'core', clientAddress: null }

/** A transfer to post: money to move between two wallets of one workspace. */
export type Posting = Caller & {
  kind: 'posting'
  type: TransferType
  transferId: Uuid<'transfer'>
  /** The client's idempotency key; null when the client sent none. */
  bizId: string | null
  sourceWalletId: WalletRef
  targetWalletId: WalletRef
  amount: string
  currency: string
  remark: string | null
  reference: string | null
  batchId: Uuid<'transfer'> | null
  /** Why a deposit or withdrawal is made, for the audit. */
  reason?: string | undefined
  /** The hold to capture, and whether the rest of it stays held. */
  draw: { hold: Name<'hold'>; keepsRest: boolean } | null
}

/** An order to reverse, whole or in part, by a transfer in the opposite direction. */
export type Reversal = Caller & {
  kind: 'reversal'
  transferId: Uuid<'transfer'>
  bizId: string
  reverses: Name<'transfer'>
  amount: string
  currency: string
  remark: string | null
  reference: string | null
  batchId: Uuid<'transfer'> | null
  /** Why an operator reverses it, for the audit. */
  reason?: string | undefined
}

/** A part of a wallet's balance to reserve, counted in seconds from the posting time. */
export type HoldCreation = Caller & {
  kind: 'hold creation'
  holdId: Uuid<'hold'>
  bizId: string
  walletId: WalletRef
  amount: string
  currency: string
  expiresInSeconds: number
  remark: string | null
  reference: string | null
}

/** A hold to release. */
export type HoldRelease = Caller & {
  kind: 'hold release'
  hold: Name<'hold'>
  /** Why an operator releases it, for the audit. */
  reason?: string | undefined
}

/** Expires the due holds of a wallet. Every request does this for the wallets that it uses; this one does nothing else. */
export type Expiry = Caller & { kind: 'expiry'; walletId: Uuid<'wallet'> }

/** The commands by their kind. */
type Commands = {
  posting: Posting
  reversal: Reversal
  'hold creation': HoldCreation
  'hold release': HoldRelease
  expiry: Expiry
}
export type CommandKind = keyof Commands
export type Command<Kind extends CommandKind = CommandKind> = { [Each in Kind]: { kind: Each } & Commands[Each] }[Kind]

/** Commands of one caller, which are applied all or none, in order. */
export type LedgerRequest<Given extends readonly Command[] = readonly Command[]> = {
  workspaceId: Uuid<'workspace'>
  commands: Given
  /** Whether this may already be posted, so that the IDs of its transfers must be looked up first. */
  mayBePosted: boolean
  /** How long the caller waits, as a time of `performance.now()`. */
  deadlineMs: number
}

export type MadeTransfer = { transfer: Transfer; reversedAmount: string }
export type MadeHold = { hold: HoldRow }

/** The record that a command of each kind makes, or finds when it is a replay. */
export type MadeByKind = {
  posting: MadeTransfer
  reversal: MadeTransfer
  'hold creation': MadeHold
  'hold release': MadeHold
  expiry: null
}
export type Made = MadeByKind[CommandKind]
/** What these commands make, in their order. */
export type MadeBy<Given extends readonly Command[]> = { -readonly [At in keyof Given]: MadeByKind[Given[At]['kind']] }

/** `after`: what the caller waits for before it is answered. It never rejects. */
export type RequestResult =
  | { kind: 'posted' | 'replayed'; made: Made[] }
  | { kind: 'refused'; error: DomainError; after?: Promise<void> }

export const refusal = (error: DomainError): RequestResult => ({ kind: 'refused', error })
/** S002: certainly not posted, safe to retry. */
export const unavailable = (): RequestResult => refusal(new DomainError('S002', { retryAfterSeconds: 1 }))

/** The ID of the HTTP request or call that this request comes from. */
export function requestIdOf({ commands }: LedgerRequest): string {
  return commands[0]!.requestId
}

/** The workspaces of these requests, each once. */
export function workspacesOf(requests: readonly LedgerRequest[]): Uuid<'workspace'>[] {
  return [...new Set(requests.map(({ workspaceId }) => workspaceId))]
}

/** A row of a workspace, by its UUID. */
export type RowKey<Kind extends IdKind = IdKind> = { workspaceId: Uuid<'workspace'>; id: Uuid<Kind> }

/** The wallets that these requests name by ID, each once. */
export function walletsOf(requests: readonly LedgerRequest[]): RowKey<'wallet'>[] {
  const wallets = new Map<string, RowKey<'wallet'>>()
  for (const { workspaceId, commands } of requests)
    for (const command of commands)
      for (const id of walletIdsOf(command))
        if (typeof id === 'string') wallets.set(`${workspaceId}/${id}`, { workspaceId, id })
  return [...wallets.values()]
}

function walletIdsOf(command: Command): WalletRef[] {
  if (command.kind === 'posting') return [command.sourceWalletId, command.targetWalletId]
  return 'walletId' in command ? [command.walletId] : []
}

/** A row of a workspace, by what names it. */
export type NameKey<Kind extends IdKind = IdKind> = { workspaceId: Uuid<'workspace'>; name: Name<Kind> }

/** The actors of these requests, and the currencies that each of them uses. */
export function spendersOf(
  requests: readonly LedgerRequest[],
): { workspaceId: Uuid<'workspace'>; actor: string; currency: string }[] {
  return requests.flatMap(({ workspaceId, commands }) =>
    commands.flatMap(command =>
      'currency' in command ? [{ workspaceId, actor: command.actor, currency: command.currency }] : [],
    ),
  )
}

/** The holds that these requests name. */
export function holdNamesOf(requests: readonly LedgerRequest[]): NameKey<'hold'>[] {
  return namesOf(requests, command => {
    if (command.kind === 'posting') return command.draw ? [command.draw.hold] : []
    if (command.kind === 'hold creation') return [{ bizId: command.bizId }, { id: command.holdId }]
    return command.kind === 'hold release' ? [command.hold] : []
  })
}

/** The orders that these requests reverse. */
export function reversedNamesOf(requests: readonly LedgerRequest[]): NameKey<'transfer'>[] {
  return namesOf(requests, command => (command.kind === 'reversal' ? [command.reverses] : []))
}

/** What may name a transfer that a request repeats: its bizId, and its ID if it may already be posted. */
export function transferNamesOf(requests: readonly LedgerRequest[]): NameKey<'transfer'>[] {
  return requests.flatMap(request =>
    namesOf([request], command => {
      if (command.kind !== 'posting' && command.kind !== 'reversal') return []
      return [
        ...(command.bizId === null ? [] : [{ bizId: command.bizId }]),
        ...(request.mayBePosted ? [{ id: command.transferId }] : []),
      ]
    }),
  )
}

function namesOf<Kind extends IdKind>(
  requests: readonly LedgerRequest[],
  namesIn: (command: Command) => Name<Kind>[],
): NameKey<Kind>[] {
  return requests.flatMap(({ workspaceId, commands }) =>
    commands.flatMap(command => namesIn(command).map(name => ({ workspaceId, name }))),
  )
}

/** Whether a request only creates transfers between wallets, and none that captures a hold or may already be posted. */
export function isPlain({ commands, mayBePosted }: LedgerRequest): boolean {
  return (
    !mayBePosted &&
    commands.every(command => command.kind === 'posting' && command.type === 'TRANSFER' && command.draw === null)
  )
}

/** Whether this is a batch of the API, also one of a single transfer: a rejection then names the place of its command. */
export function isBatch({ commands }: LedgerRequest): boolean {
  const [first] = commands
  return commands.length > 1 || (first !== undefined && 'batchId' in first && first.batchId !== null)
}

/** Requests about holds are decided before those that move money, so that events of the journal have the lower positions. */
export function isAboutHolds({ commands }: LedgerRequest): boolean {
  const { kind } = commands[0]!
  return kind === 'hold creation' || kind === 'hold release' || kind === 'expiry'
}

/** Calls `decideOwn` with the requests of each workspace. Returns the results in the order of all requests. */
export function resultsByWorkspace(
  requests: readonly LedgerRequest[],
  decideOwn: (workspaceId: Uuid<'workspace'>, own: LedgerRequest[]) => RequestResult[],
): RequestResult[] {
  const results = new Array<RequestResult>(requests.length)
  for (const [workspaceId, places] of Map.groupBy(requests.keys(), at => requests[at]!.workspaceId)) {
    const own = decideOwn(
      workspaceId,
      places.map(at => requests[at]!),
    )
    for (const [at, result] of own.entries()) results[places[at]!] = result
  }
  return results
}
