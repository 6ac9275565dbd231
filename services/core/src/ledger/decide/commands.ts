import {
  type Caller,
  DomainError,
  type Id,
  type IdKind,
  isBizId,
  mintId,
  type Uuid,
  uuidFromId,
} from '@workspace-wallet/contract'
import type { Command, LedgerRequest, Name, WalletRef } from './requests.ts'

const defaultBudgetMs = 10_000

/** The input of a command, as far as all commands have it. */
type CommandCall = { workspaceId: string; caller: Caller; resend?: boolean | undefined; budgetMs?: number | undefined }

/** A request with these commands. @throws DomainError GA2032 if the workspace ID is malformed */
export function requestOf<const Given extends readonly Command[]>(
  input: CommandCall,
  commands: Given,
): LedgerRequest<Given> {
  const workspaceId = uuidFromId('workspace', input.workspaceId)
  if (!workspaceId) throw new DomainError('GA2032')
  return {
    workspaceId,
    commands,
    mayBePosted: input.resend ?? false,
    deadlineMs: performance.now() + (input.budgetMs ?? defaultBudgetMs),
  }
}

export function callerOf(actor: string, { caller }: Pick<CommandCall, 'caller'>) {
  return { actor, requestId: caller.requestId, clientAddress: caller.address ?? null }
}

/** The UUID of the ID that the caller generated, or a new one. */
export function newId<Kind extends 'hold' | 'transfer'>(kind: Kind, given: Id<Kind> | undefined): Uuid<Kind> {
  return uuidFromId(kind, given ?? mintId(kind))
}

/** A wallet, by the ID that was sent. */
export function walletRefOf(text: string): WalletRef {
  return uuidFromId('wallet', text) ?? { malformed: text }
}

/** An ID of this kind, or a bizId, which never has the form of such an ID. */
export function nameOf<Kind extends IdKind>(kind: Kind, text: string): Name<Kind> {
  const id = uuidFromId(kind, text)
  // Nothing has an empty bizId. Texts of other forms may be as long as a body, and take long to write into a statement.
  return id ? { id } : { bizId: isBizId(text) ? text : '' }
}
