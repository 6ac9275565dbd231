/** Whatever went wrong, as one sentence that says how to mend it. */

import { type ErrorCode, type ErrorDetails, errorTable, isErrorCode } from '@workspace-wallet/contract'
import { type CoreErrorData, CoreRejected, NoAnswerError } from '@workspace-wallet/core-client'
import { asSentence } from '../command-line/sentence.ts'
import type { CoreAddress } from './connection.ts'

export function sentenceOf(error: unknown, core: CoreAddress): string {
  const data = dataOf(error)
  if (data) return answerSentence(data, (error as Error).message, core)
  const failure = noAnswerOf(error)
  if (failure) return noAnswerSentence(failure, core)
  return asSentence((error as Error).message)
}

/** Whether an answer that comes in pieces had begun, and ended too early. */
export function wasCutOff(error: unknown): boolean {
  return dataOf(error) === undefined && (noAnswerOf(error)?.sent ?? false)
}

/** Whether the call may have been carried out although it failed. */
export function isOutcomeUnknown(error: unknown): boolean {
  const data = dataOf(error)
  if (!data) return noAnswerOf(error)?.sent ?? false
  return data.appError ? data.appError.code === 'S003' : data.code === 'INTERNAL_SERVER_ERROR'
}

function answerSentence(data: CoreErrorData, message: string, core: CoreAddress): string {
  const { appError, code } = data
  if (appError?.kind === 'admin') return appError.sentence
  if (appError?.kind === 'domain' && !isErrorCode(appError.code))
    return `Core refused this with a code that is unknown here (${message}): use the admin command of core's version.`
  if (appError?.kind === 'domain')
    return domainSentences[appError.code]?.(appError.details) ?? tableSentence(appError.code)
  if (code === 'FORBIDDEN') return `The token of ${core.source} is not one of role admin (${message}): use one that is.`
  if (code === 'NOT_FOUND')
    return `The core at ${core.urls.join(', ')} is of another version (${message}): restart it from this checkout.`
  if (code === 'BAD_REQUEST') return `Core refuses a value: ${firstIssue(message)}.`
  return `Core failed (${message}).`
}

/** Codes that an administrative call can meet, in an operator's words; any other one comes from the table. */
const domainSentences: { [Code in ErrorCode]?: (details: unknown) => string } = {
  S012: details => {
    const { field, reason, limit } = details as ErrorDetails['S012']
    if (reason !== 'TOO_MANY_DECIMALS') return `Core refuses the ${field} (${reason}): correct it.`
    return limit === 0
      ? `The ${field} has decimals, and the wallet's currency has none: give a whole number.`
      : `The ${field} has too many decimals: the wallet's currency has ${limit}.`
  },
  S002: details =>
    `Nothing was done, because core has no working database, too much to do or a halted ledger: try again in ${(details as ErrorDetails['S002']).retryAfterSeconds} s, and run ledger halted if it stays so.`,
  GA2032: () => 'There is no such workspace, or it was deleted.',
  W001: () => 'The workspace has no such wallet: compare both ids.',
  W002: details =>
    (details as ErrorDetails['W002']).status === 'FROZEN'
      ? 'The wallet is frozen: unfreeze it first.'
      : 'The wallet is closed, and a closed wallet neither pays nor receives.',
  T002: () => 'The wallet holds less than that: withdraw its balance at most.',
  T005: details =>
    `The bizId ${(details as ErrorDetails['T005']).bizId} names another movement of money already: give another --biz-id.`,
}

function tableSentence(code: ErrorCode): string {
  return `Core answered ${code} ${errorTable[code].message}: ${errorTable[code].when}`
}

function noAnswerSentence(failure: NoAnswerError, core: CoreAddress): string {
  const where = core.urls.join(', ')
  if (failure instanceof CoreRejected) {
    if (failure.status === 401) return wrongToken(core)
    if (failure.status === 404)
      return `What answers at ${where} (HTTP 404) is not a core of this version: set CORE_URL to core itself, not to the public URL of a gateway.`
    return `What answers at ${where} (HTTP ${failure.status}) is not the core of this version: check the URL.`
  }
  return failure.sent
    ? `The core at ${where} was asked and did not answer: look whether it was done before you do it again.`
    : `No core answers at ${where}: start the service with npm start, or correct CORE_URL.`
}

function wrongToken(core: CoreAddress): string {
  return `The core at ${core.urls.join(', ')} does not know the token of ${core.source}: use one of its service tokens of role admin.`
}

/** Undefined when core did answer. */
function noAnswerOf(error: unknown): NoAnswerError | undefined {
  const { cause } = error as Error
  return cause instanceof NoAnswerError ? cause : undefined
}

function dataOf(error: unknown): CoreErrorData | undefined {
  return (error as { data?: CoreErrorData | null }).data ?? undefined
}

/** tRPC hands on zod's issues as JSON. */
function firstIssue(message: string): string {
  try {
    const [issue] = JSON.parse(message) as { path: (string | number)[]; message: string }[]
    return `${issue!.path.join('.')} (${issue!.message})`
  } catch {
    return message
  }
}
