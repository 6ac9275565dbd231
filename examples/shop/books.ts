import type { Event } from '@workspace-wallet/client'
import type { Database, Row } from './database.ts'
import { toCents } from './money.ts'

export type Cursor = { after: number; afterEventId: string | null }

/**
 * The shop's view of the ledger. It is built from events only, in order and each exactly once. The responses to commands are
 * not booked.
 */
export class Books {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** The last event that is booked. */
  get cursor(): Cursor {
    const { position, event_id } = this.#database.first('select position, event_id from cursor')!
    return { after: Number(position), afterEventId: event_id as string | null }
  }

  /**
   * Books an event, if it is the next one, in one transaction with the cursor. An event that is booked already has no effect.
   *
   * @returns false if events before this one are missing
   */
  add(event: Event): boolean {
    return this.#database.transaction(() => {
      const { after } = this.cursor
      if (event.position === after + 1) {
        this.#apply(event)
        this.#database.run('update cursor set position = ?, event_id = ?', BigInt(event.position), event.eventId)
      }
      return event.position <= after + 1
    })
  }

  #apply(event: Event): void {
    switch (event.type) {
      case 'wallet.created': {
        const { walletId, bizId } = event.data
        if (this.#finish(bizId))
          this.#database.run('insert into wallet (wallet_id, biz_id) values (?, ?)', walletId, bizId)
        return
      }
      case 'wallet.deposited':
        this.#book(event, event.data.funding.walletId, event.data.funding.amount)
        return
      case 'wallet.withdrawn':
        this.#book(event, event.data.funding.walletId, `-${event.data.funding.amount}`)
        return
      case 'transfer.completed': {
        const { bizId, amount, sourceWalletId, targetWalletId } = event.data.transfer
        this.#book(event, sourceWalletId, `-${amount}`)
        this.#book(event, targetWalletId, amount)
        const command = this.#finish(bizId)
        if (command?.kind === 'CAPTURE') this.#addTo('captured', command)
        if (command?.kind === 'REFUND') this.#addTo('refunded', command)
        // The hold has ended with this capture.
        if (/^0(\.0+)?$/.test(event.data.holdRemaining ?? '')) this.#end(command?.order_id, 'COMPLETED')
        return
      }
      case 'hold.created': {
        const command = this.#finish(event.data.hold.bizId)
        if (command) this.#database.run(`update orders set status = 'AUTHORIZED' where order_id = ?`, command.order_id!)
        return
      }
      case 'hold.released':
        this.#finish(`${event.data.hold.bizId}:release`)
        this.#end(this.#find(event.data.hold.bizId)?.order_id, 'CANCELLED')
        return
      case 'hold.expired':
        this.#end(this.#find(event.data.hold.bizId)?.order_id, 'EXPIRED')
    }
  }

  /** An entry of a wallet of the shop. Other wallets of the workspace have no books here. */
  #book({ position, timestamp }: Event, walletId: string, amount: string): void {
    if (!this.#database.first('select 1 from wallet where wallet_id = ?', walletId)) return
    const cents = toCents(amount)
    const entry = 'insert into entry (position, wallet_id, cents, booked_at) values (?, ?, ?, ?)'
    this.#database.run(entry, BigInt(position), walletId, cents, timestamp)
    this.#database.run('update wallet set balance = balance + ? where wallet_id = ?', cents, walletId)
  }

  #find(bizId: string | null): Row | undefined {
    return this.#database.first('select * from command where biz_id = ?', bizId)
  }

  /** The command that this event is the effect of. Even one that was refused: the ledger decides. */
  #finish(bizId: string | null): Row | undefined {
    this.#database.run(`update command set state = 'DONE', code = null where biz_id = ?`, bizId)
    return this.#find(bizId)
  }

  #addTo(column: 'captured' | 'refunded', { cents, order_id }: Row): void {
    this.#database.run(`update orders set ${column} = ${column} + ? where order_id = ?`, cents!, order_id!)
  }

  /** An order of which something was captured is completed, however its hold ended. */
  #end(orderId: string | bigint | null | undefined, status: string): void {
    const change = `update orders set status = iif(captured > 0, 'COMPLETED', ?) where order_id = ?`
    this.#database.run(change, status, orderId ?? null)
  }
}
