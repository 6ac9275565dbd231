/** Describes any error of a call to core in one sentence that says how to fix it. */

import { type ErrorCode, type ErrorDetails, errorTable, isErrorCode, settledAfterMs } from '@workspace-wallet/contract'
import {
  type CoreErrorData,
  CoreRejected,
  type InputFault,
  type NoAnswerError,
  noAnswerErrorOf,
} from '@workspace-wallet/core-client'
import { asSentence } from '../command-line/sentence.ts'
import type { CoreAddress } from './connection.ts'

export function sentenceOf(error: unknown, core: CoreAddress): string {
  const data = dataOf(error)
  if (data) return answerSentence(data, (error as Error).message, core)
  const failure = noAnswerErrorOf(error)
  if (failure) return noAnswerSentence(failure, core)
  return asSentence((error as Error).message)
}

/** Whether the connection was lost after the call was sent, for example during a streamed response. */
export function wasInterrupted(error: unknown): boolean {
  return dataOf(error) === undefined && (noAnswerErrorOf(error)?.sent ?? false)
}

/** Whether core, its database or the connection to it is unavailable for now. */
export function isUnavailable(error: unknown): boolean {
  const data = dataOf(error)
  if (data) return data.appError?.code === 'S002'
  const failure = noAnswerErrorOf(error)
  return failure !== null && !(failure instanceof CoreRejected && failure.status < 500)
}

/** Whether the call may have been executed although it failed. */
export function isOutcomeUnknown(error: unknown): boolean {
  const data = dataOf(error)
  if (!data) return noAnswerErrorOf(error)?.sent ?? false
  return data.appError ? data.appError.code === 'S003' : data.code === 'INTERNAL_SERVER_ERROR'
}

function answerSentence(data: CoreErrorData, message: string, core: CoreAddress): string {
  const { appError, code } = data
  if (appError?.kind === 'admin') return appError.sentence
  if (appError?.kind === 'domain' && !isErrorCode(appError.code))
    return `Core answered with an unknown error code (${message}): use the admin command of core's version.`
  if (appError?.kind === 'domain') return domainSentence(appError.code, appError.details)
  if (code === 'FORBIDDEN')
    return `The token of ${core.source} does not have a role that may do this: use one of the role admin.`
  if (code === 'NOT_FOUND')
    return `The core at ${core.urls.join(', ')} has another version (${message}): restart it from this checkout.`
  if (data.inputFaults) return `Core rejected a value: ${describe(data.inputFaults[0]!)}.`
  return `Core failed (${message}): check its log.`
}

/** Sentences for operators for the codes that administrative calls return. The error table describes all others. */
const domainSentences: { [Code in ErrorCode]?: (details: ErrorDetails[Code]) => string } = {
  S012: ({ field, reason, limit }) => {
    if (reason === 'TOO_EXPENSIVE')
      return `The search took longer than ${limit} s: narrow it, for example to a workspace, a wallet, an exact name or a short time.`
    if (reason === 'REQUIRED' && field === 'workspaceId')
      return 'Several workspaces may use the same bizId: give --workspace, or a transferId.'
    // `statement export` is the only command with a time that must be past.
    if (field === 'at') return `--to must be at least ${settledAfterMs / 1000} seconds ago: give a time up to ${limit}.`
    if (reason !== 'TOO_MANY_DECIMALS') return `Core rejected the ${field} (${reason}): correct it.`
    return decimalsSentence(flagOf(field), limit as number)
  },
  S002: ({ retryAfterSeconds }) =>
    `Nothing was done, because core is overloaded, its database is unavailable, or the workspace is halted: retry in ${retryAfterSeconds} s. If it still fails, run ledger halted.`,
  GA2032: () => 'There is no such workspace, or it was deleted: check its ID.',
  W001: () => 'The workspace has no such wallet: check both IDs.',
  W002: ({ status }) =>
    status === 'FROZEN'
      ? 'The wallet is frozen: unfreeze it first.'
      : 'The wallet is closed and cannot pay or receive: use another one.',
  T001: () => 'The workspace has no such transfer: check both IDs. Deposits and withdrawals cannot be reversed.',
  T002: () =>
    'The available balance of the wallet that pays, without what its holds reserve, is lower than the amount: give a lower --amount, or release holds.',
  T003: ({ currency, field, held }) =>
    `The ${field === 'reversesTransferId' ? 'transfer' : 'wallet'} is in ${held}, not in ${currency}: correct --currency.`,
  T005: ({ bizId }) =>
    `The bizId ${bizId} belongs to another deposit, withdrawal, transfer or wallet: give another --biz-id.`,
  T006: () => 'The transfer is a reversal itself, which cannot be reversed: a client can make a new transfer instead.',
  T007: ({ remaining }) => `Only ${remaining} of the transfer is not reversed yet: give a lower --amount.`,
  H001: () => 'The workspace has no such hold: check both IDs.',
  H002: ({ status }) => `The hold is ${status}, so nothing remains of it to release.`,
  E001: ({ position }) =>
    `The log ends at position ${position}: give a lower --after. If it was longer before, an earlier copy of the database was restored.`,
  E002: () => 'The workspace has no such webhook: check both IDs.',
}

/** @param details of the code: core guarantees that they match */
function domainSentence(code: ErrorCode, details: unknown): string {
  const sentence = domainSentences[code] as ((details: unknown) => string) | undefined
  return sentence?.(details) ?? `Core answered ${code} ${errorTable[code].message}: ${errorTable[code].when}`
}

/** An amount with more decimals than its currency has. */
export function decimalsSentence(flag: string, limit: number): string {
  return limit === 0
    ? `${flag} has decimals, but its currency has none: give a whole number.`
    : `${flag} has too many decimals: give at most ${limit}, like its currency.`
}

/** `perDay`: `--per-day`. */
function flagOf(field: string): string {
  return `--${field.replaceAll(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)}`
}

function noAnswerSentence(failure: NoAnswerError, core: CoreAddress): string {
  const where = core.urls.join(', ')
  if (failure instanceof CoreRejected) {
    if (failure.status === 401) return wrongToken(core)
    if (failure.status === 404)
      return `The server at ${where} (HTTP 404) is not a core of this version: set CORE_URL to the URL of core, not to the public URL of a gateway.`
    return `The server at ${where} (HTTP ${failure.status}) is not a core of this version: check CORE_URL.`
  }
  return failure.sent
    ? `The core at ${where} did not answer, and the command may have been executed: check the result before you repeat it.`
    : `No core answers at ${where}: start the service with npm start, or correct CORE_URL.`
}

function wrongToken(core: CoreAddress): string {
  return `The core at ${core.urls.join(', ')} rejects the token of ${core.source}, which is unknown, expired or disabled: use a service token of the role admin, or that of an operator.`
}

function dataOf(error: unknown): CoreErrorData | undefined {
  return (error as { data?: CoreErrorData | null }).data ?? undefined
}

function describe({ path, message }: InputFault): string {
  return `${path} (${message})`
}
