import { setTimeout as pause } from 'node:timers/promises'
import { ApiError, type WalletClient } from '@workspace-wallet/client'
import type { Database, Row } from './database.ts'

const maxInFlight = 16
const retryMs = 1_000

/**
 * Sends the commands that are PENDING; those of one order one after the other. It is safe to send a command again, whatever
 * became of it, because its body, and so its bizId, is the same.
 */
export class Commands {
  readonly #database: Database
  readonly #client: WalletClient
  readonly #inFlight = new Set<unknown>()

  constructor(database: Database, client: WalletClient) {
    this.#database = database
    this.#client = client
  }

  /** Call it at the start and whenever a command was stored. */
  send(): void {
    // With min(number), SQLite returns the other columns of the same row.
    const oldest = `select min(number) as number, * from command
      where state = 'PENDING' group by coalesce(order_id, biz_id) order by number`
    for (const command of this.#database.all(oldest)) {
      const subject = command.order_id ?? command.biz_id
      if (this.#inFlight.size >= maxInFlight) return
      if (this.#inFlight.has(subject)) continue
      this.#inFlight.add(subject)
      void this.#perform(command).finally(() => {
        this.#inFlight.delete(subject)
        this.send()
      })
    }
  }

  async #perform(command: Row): Promise<void> {
    try {
      await this.#call(command)
      this.#answered(command, 'SENT', null)
    } catch (error) {
      if (isFinal(error)) return this.#answered(command, 'REJECTED', error.code)
      // The service is unavailable, the outcome is unknown, or the key is wrong: the command stays PENDING.
      console.error(String(error))
      await pause(retryMs)
    }
  }

  #call({ kind, body }: Row): Promise<unknown> {
    const { wallets, holds, transfers } = this.#client
    const request = JSON.parse(body as string)
    switch (kind) {
      case 'WALLET':
        return wallets.create(request)
      case 'HOLD':
        return holds.create(request)
      case 'CAPTURE':
        return transfers.create(request)
      case 'REFUND':
        return transfers.reverse(request)
      default:
        return holds.release(request.holdId)
    }
  }

  /** Its event may be booked already. */
  #answered({ biz_id, kind, order_id }: Row, state: 'SENT' | 'REJECTED', code: string | null): void {
    this.#database.transaction(() => {
      const change = `update command set state = ?, code = ? where biz_id = ? and state = 'PENDING'`
      const isChanged = this.#database.run(change, state, code, biz_id!) > 0
      if (isChanged && state === 'REJECTED' && kind === 'HOLD')
        this.#database.run(`update orders set status = 'REJECTED' where order_id = ?`, order_id!)
    })
  }
}

/** Whether a rule of the ledger forbids the command, such as T002: not enough money. It has no effect, and a retry would not help. */
function isFinal(error: unknown): error is ApiError {
  return error instanceof ApiError && error.outcome === 'NOT_EXECUTED' && [400, 404, 409, 422].includes(error.status)
}
