import type { Log } from '@workspace-wallet/runtime'

/** Core does its checks of the database twice a second. */
const loggedAfterMs = 2_000

/** PostgreSQL ended the session because somebody called pg_terminate_backend, or because it stops. */
const adminShutdown = '57P01'
/** PostgreSQL starts or stops. */
const cannotConnectNow = '57P03'

/** PostgreSQL gives the same code to statements that it cancels itself, such as after a time. */
const cancelled = { code: '57014', message: 'canceling statement due to user request' }

/** Whether somebody has ended the session or cancelled the statement: the server is reachable. */
export function isEnded(error: unknown): boolean {
  const code = codeOf(error)
  return code === adminShutdown || (code === cancelled.code && (error as Error).message === cancelled.message)
}

/** Whether the driver does not log in with what the server asks for, such as more iterations of the hash of the password than it computes. */
export function isLoginRefused(error: unknown): boolean {
  return /\bSASL: /.test(String((error as Error | undefined)?.message))
}

/** Errors of sockets and of the driver have no SQLSTATE. Class XX: internal errors of PostgreSQL. */
function isUnreachable(error: unknown): boolean {
  if (isLoginRefused(error)) return false
  const code = codeOf(error)
  return code === undefined || code === cannotConnectNow || !/^(\d[0-9A-Z]|XX)[0-9A-Z]{3}$/.test(code)
}

const codeOf = (error: unknown) => (error as { code?: string } | undefined)?.code

/**
 * The outcomes of a check that core repeats. If the check has failed for two seconds, it logs that once, and also when it succeeds again:
 * whoever has the password of the service's role can end the sessions of core, or cancel their statements, and so suppress a check.
 */
export class RepeatedCheck {
  readonly #log: Log
  readonly #name: string
  #succeededMs = performance.now()
  /** Whether somebody has ended it since. */
  #wasEnded = false
  #isLogged = false

  /** @param name what is checked, for the log */
  constructor(log: Log, name: string) {
    this.#log = log
    this.#name = name
  }

  /** How long ago the check succeeded; without any success, how long ago it began. */
  get ageMs(): number {
    return performance.now() - this.#succeededMs
  }

  succeeded(): void {
    this.#succeededMs = performance.now()
    if (this.#isLogged) this.#log.warn({ check: this.#name }, 'a check of the database succeeds again')
    this.#isLogged = this.#wasEnded = false
  }

  /** @param isAnswering whether the database answers on other connections. If it is unavailable, other calls log it */
  failed(error: unknown, { isAnswering = false } = {}): void {
    this.#log.debug({ err: error, check: this.#name }, 'a check of the database failed')
    this.#wasEnded ||= isEnded(error)
    if (this.#isLogged || this.ageMs < loggedAfterMs || (isUnreachable(error) && !isAnswering)) return
    this.#isLogged = true
    this.#log.error(
      { err: error, check: this.#name, forMs: Math.round(this.ageMs) },
      this.#wasEnded
        ? 'a check of the database fails, because somebody ends or cancels it: change the password of the role'
        : 'a check of the database fails',
    )
  }
}
