import { DomainError } from '@workspace-wallet/contract'
import { StaleDatabase } from './history.ts'
import { isLoginRefused } from './repeated-check.ts'
import { UnsuitableSession } from './session-checks.ts'
import { isWithoutBuffers } from './statement.ts'

/** The kinds of failed database calls. */
export type DatabaseFault =
  /** A conflict with another transaction: rolled back, can be retried at once. */
  | 'conflict'
  /** A lock or statement timeout: rolled back. */
  | 'timeout'
  /** A violated unique constraint. */
  | 'duplicate'
  /** No connection, or a database that accepts no work now. */
  | 'unavailable'
  /** Anything else: a bug, or a violated constraint that the code should have checked. */
  | 'other'

const lockNotAvailable = '55P03'
/** A node of Citus that does not have the schema any more (see places/placement.ts). PostgreSQL itself reports it to no statement of core. */
export const movedAway = '25001'

const faultBySqlState: Record<string, DatabaseFault> = {
  '40001': 'conflict', // serialization_failure
  '40P01': 'conflict', // deadlock_detected
  [movedAway]: 'conflict',
  [lockNotAvailable]: 'timeout',
  '57014': 'timeout', // query_canceled
  '25P03': 'timeout', // idle_in_transaction_session_timeout
  '25P04': 'timeout', // transaction_timeout
  '23505': 'duplicate', // unique_violation
  '28000': 'unavailable', // invalid_authorization_specification
  '28P01': 'unavailable', // invalid_password
  '3D000': 'unavailable', // invalid_catalog_name: the database is gone
  '55000': 'unavailable', // object_not_in_prerequisite_state: it takes no connections
  '25006': 'unavailable', // read_only_sql_transaction: a standby, after a failover
}
const unavailableClasses = new Set(['08', '53', '57', '58'])

/** S002, because this core cannot use its database, or stops: another core may be able to. Callers then prefer others for a moment. */
export class CoreUnavailable extends DomainError<'S002'> {
  constructor() {
    super('S002', { retryAfterSeconds: 1 })
  }
}

/** Whether a statement waited too long for a lock. */
export function isLockTimeout(error: unknown): boolean {
  return (error as { code?: unknown }).code === lockNotAvailable
}

export function classifyDatabaseError(error: unknown): DatabaseFault {
  // A value that our code cannot handle. Its code begins with ERR_, as some codes of lost connections do.
  if (error instanceof TypeError || error instanceof RangeError) return 'other'
  if (error instanceof UnsuitableSession || error instanceof StaleDatabase || isWithoutBuffers(error))
    return 'unavailable'
  const { code, message } = error as { code?: unknown; message?: unknown }
  // Errors of sockets and of the client library have no SQLSTATE. EPIPE looks like one, but no class begins with E.
  if (typeof code === 'string' && /^E[A-Z]+/.test(code)) return 'unavailable'
  if (typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code))
    return faultBySqlState[code] ?? (unavailableClasses.has(code.slice(0, 2)) ? 'unavailable' : 'other')
  const isUnavailable =
    isLoginRefused(error) || /connection|timeout|terminated|not queryable|socket/i.test(String(message))
  return isUnavailable ? 'unavailable' : 'other'
}

const maxAttempts = 5

/** Runs a transaction, and retries conflicts a few times with a growing random delay. */
export async function retryConflicts<Result>(transaction: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt++)
    try {
      return await transaction()
    } catch (error) {
      if (attempt >= maxAttempts || classifyDatabaseError(error) !== 'conflict') throw error
      await backOff(attempt)
    }
}

/** Waits a random time: up to 20 ms after the first attempt, up to twice as long after each further one. */
export async function backOff(attempt: number): Promise<void> {
  await new Promise(resolve => setTimeout(resolve, Math.random() * 10 * 2 ** attempt))
}
