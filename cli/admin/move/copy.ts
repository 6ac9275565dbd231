/** Copies the rows of a workspace between two places, with the roles that own the tables, and compares every row. */

import type { Uuid } from '@workspace-wallet/contract'
import type pg from 'pg'

/** A connection to a place, with the role that owns the tables. */
export type Side = pg.Client

/** The rows of one statement. */
const chunkSize = 2_000

/**
 * Rows of a workspace in a table, in an order. `within`: SQL for those after a number, up to another one. `write`: how the other place
 * gets them, if it has some of them already: a log never changes, wallets are updated, and holds are replaced.
 */
type Ordered = {
  table: string
  order: string
  within: (from: number, to: number) => string
  write: 'APPEND' | 'UPDATE' | 'REPLACE'
}

const by = (column: string) => (from: number, to: number) => `${column} > ${from} and ${column} <= ${to}`
const log = (table: string): Ordered => ({ table, order: 'position', within: by('position'), write: 'APPEND' })
const logs = { transfers: log('transfer'), journal: log('journal'), audit: log('audit') }
const wallets: Ordered = {
  table: 'wallet',
  order: 'number',
  // The same condition as that of the index.
  within: (from, to) => `number is not null and ${by('number')(from, to)}`,
  write: 'UPDATE',
}
/** One for each currency. */
const externalWallets: Ordered = { ...wallets, order: 'currency', within: () => `kind = 'EXTERNAL'` }
const holds: Ordered = { table: 'hold', order: 'number', within: by('number'), write: 'REPLACE' }

/** The other tables, whose rows are few. Those that name others come last. */
const smallTables = ['workspace', 'member', 'api_key', 'webhook', 'spending_limit'] as const

/** How far a copy is: the ends of the event log and of the audit that both sides have. */
export type Copied = { position: number; audit: number }
export const nothingCopied: Copied = { position: 0, audit: 0 }

export type OnCopied = (done: number, total: number) => void

type Range = { from: number; to: number }

export class Copier {
  readonly #source: Side
  readonly #target: Side
  readonly #workspaceId: Uuid<'workspace'>
  readonly #columns = new Map<string, string>()

  constructor(source: Side, target: Side, workspaceId: Uuid<'workspace'>) {
    this.#source = source
    this.#target = target
    this.#workspaceId = workspaceId
  }

  /**
   * Copies the rows of the logs behind `copied`, and all wallets and holds that differ. While the workspace is used, the result is
   * behind it; what it has copied of the logs stays the same.
   *
   * @throws Error if the other place has other rows of the logs
   */
  async copy(copied: Copied, onCopied: OnCopied = () => {}): Promise<Copied> {
    const end = await this.#endOf()
    await this.#prepare()
    await this.#copyOrdered(externalWallets, { from: 0, to: 1 })
    await this.#copyOrdered(wallets, { from: 0, to: end.wallets })
    await this.#copyOrdered(holds, { from: 0, to: end.holds })
    for (let from = copied.position; from < end.position; from += chunkSize) {
      const to = Math.min(from + chunkSize, end.position)
      await this.#copyOrdered(logs.transfers, { from, to })
      await this.#copyOrdered(logs.journal, { from, to })
      onCopied(to, end.position)
    }
    await this.#copyOrdered(logs.audit, { from: copied.audit, to: end.audit })
    return { position: end.position, audit: end.audit }
  }

  /** Copies the rest of a workspace that is stopped: all small tables and the ledger, in one transaction. */
  async finish(): Promise<void> {
    // Before the transaction: while it has rows of these tables, nobody in the other place can change access.
    const rows: { table: string; rows: string }[] = []
    for (const table of smallTables) rows.push({ table, rows: await this.#read(this.#source, { table, where: '' }) })
    const ledger = await this.#read(this.#source, { table: 'ledger', where: '' })
    const orUpdate = await this.#orUpdate('ledger', 'workspace_id')
    await this.#target.query('begin')
    try {
      for (const table of smallTables.toReversed())
        await this.#target.query(`delete from ${table} where ${keyOf(table)} = $1`, [this.#workspaceId])
      for (const each of rows) await this.#insert(each.table, each.rows, '')
      await this.#insert('ledger', ledger, orUpdate)
      await this.#target.query('commit')
    } catch (error) {
      await this.#target.query('rollback').catch(() => {})
      throw error
    }
  }

  async #endOf(): Promise<{ position: number; wallets: number; holds: number; audit: number }> {
    const { rows } = await this.#source.query(
      `select l.position::int8::text as position, l.wallet_count::text as wallets, l.hold_count::text as holds,
         coalesce((select h.position from audit_head h where h.workspace_id = l.workspace_id), 0)::text as audit
       from ledger l where l.workspace_id = $1`,
      [this.#workspaceId],
    )
    const [end] = rows
    return { position: +end.position, wallets: +end.wallets, holds: +end.holds, audit: +end.audit }
  }

  /** The rows that others name. The ledger takes no postings before its own row is copied, and before core opens it. */
  async #prepare(): Promise<void> {
    const ledger = await this.#read(this.#source, { table: 'ledger', where: '' })
    const stopped = JSON.stringify(JSON.parse(ledger).map((row: object) => ({ ...row, status: 'MOVING' })))
    await this.#insert('ledger', stopped, 'on conflict do nothing')
    await this.#target.query(`insert into audit_head values ($1, 0, '') on conflict do nothing`, [this.#workspaceId])
  }

  async #copyOrdered(ordered: Ordered, range: Range): Promise<void> {
    for (let from = range.from; from < range.to; from += chunkSize) {
      const chunk = { from, to: Math.min(from + chunkSize, range.to) }
      const [original, copy] = await Promise.all([
        this.#digest(this.#source, ordered, chunk),
        this.#digest(this.#target, ordered, chunk),
      ])
      if (original.digest === copy.digest) continue
      await this.#write(ordered, chunk, copy.last)
      // The rows of a log never change. Others may have changed since.
      if (ordered.write !== 'APPEND') continue
      const written = await this.#digest(this.#target, ordered, chunk)
      if (written.digest !== original.digest)
        throw new Error(
          `The other place has other rows in ${ordered.table} between ${chunk.from} and ${chunk.to}: cancel the move, and run the command again.`,
        )
    }
  }

  async #write(ordered: Ordered, chunk: Range, last: number | null): Promise<void> {
    const { table, write, within, order } = ordered
    // An earlier run may have copied a part of a log.
    const from = write === 'APPEND' ? Math.max(chunk.from, last ?? 0) : chunk.from
    const rows = await this.#read(this.#source, { table, where: within(from, chunk.to), order })
    const orUpdate = write === 'UPDATE' ? await this.#orUpdate(table, 'workspace_id, id') : ''
    await this.#target.query('begin')
    try {
      if (write === 'REPLACE')
        await this.#target.query(`delete from ${table} where workspace_id = $1 and ${within(from, chunk.to)}`, [
          this.#workspaceId,
        ])
      await this.#insert(table, rows, orUpdate, order)
      await this.#target.query('commit')
    } catch (error) {
      await this.#target.query('rollback').catch(() => {})
      throw error
    }
  }

  /** `last`: the position of the last row of a log. */
  async #digest(side: Side, ordered: Ordered, chunk: Range): Promise<{ digest: string; last: number | null }> {
    const { table, order, within, write } = ordered
    const columns = await this.#columnsOf(table)
    const { rows } = await side.query(
      `select ${write === 'APPEND' ? `max(${order})` : 'null'} as last, count(*) || ' ' || encode(sha256(convert_to(
         coalesce(string_agg(row (${columns})::text, E'\\n' order by ${order}), ''), 'UTF8')), 'hex') as digest
       from ${table} where workspace_id = $1 and ${within(chunk.from, chunk.to)}`,
      [this.#workspaceId],
    )
    return { digest: rows[0].digest, last: rows[0].last === null ? null : Number(rows[0].last) }
  }

  /** Rows as JSON. Its numbers are those of PostgreSQL: it must not be parsed. */
  async #read(
    side: Side,
    { table, where, order = '' }: { table: string; where: string; order?: string },
  ): Promise<string> {
    const all = await this.#columnsOf(table)
    // Each place counts the changes of access for itself.
    const columns = table === 'api_key' ? all.replace('access_revision', '0::bigint as access_revision') : all
    const { rows } = await side.query(
      `select coalesce(json_agg(t)::text, '[]') as rows from (
         select ${columns} from ${table} where ${keyOf(table)} = $1 ${where && `and ${where}`} ${order && `order by ${order}`}) t`,
      [this.#workspaceId],
    )
    return rows[0].rows
  }

  async #insert(table: string, rows: string, orUpdate: string, order = ''): Promise<void> {
    const columns = await this.#columnsOf(table)
    await this.#target.query(
      `insert into ${table} (${columns})
       select ${columns} from json_populate_recordset(null::${table}, $1::json) ${order && `order by ${order}`} ${orUpdate}`,
      [rows],
    )
  }

  async #orUpdate(table: string, conflict: string): Promise<string> {
    const names = (await this.#columnsOf(table)).split(', ')
    return `on conflict (${conflict}) do update set ${names.map(name => `${name} = excluded.${name}`).join(', ')}`
  }

  /** The columns that are copied: all but those that PostgreSQL numbers itself. */
  async #columnsOf(table: string): Promise<string> {
    const known = this.#columns.get(table)
    if (known !== undefined) return known
    const columns = await columnsIn(this.#source, table)
    if (columns !== (await columnsIn(this.#target, table)))
      throw new Error(`The table ${table} has other columns in the other place: run the migration step in both places.`)
    this.#columns.set(table, columns)
    return columns
  }
}

/** Removes the rows of a workspace that has left a place. What remains is its ledger, which takes no postings. */
export async function removeRows(
  side: Side,
  workspaceId: Uuid<'workspace'>,
  onRemoved: (rows: number) => void,
): Promise<void> {
  let removed = 0
  for (const table of ['transfer', 'journal', 'audit', 'hold', 'wallet', ...smallTables.toReversed(), ...remains])
    for (;;) {
      const { rowCount } = await side.query(
        `delete from ${table} where ctid = any (array(select ctid from ${table} where ${keyOf(table)} = $1 limit ${chunkSize}))`,
        [workspaceId],
      )
      if (!rowCount) break
      removed += rowCount
      onRemoved(removed)
    }
}

/** Where its audit and its last verification ended. */
const remains = ['audit_head', 'verified_ledger']

const keyOf = (table: string) => (table === 'workspace' ? 'id' : 'workspace_id')

async function columnsIn(side: Side, table: string): Promise<string> {
  const { rows } = await side.query(
    `select string_agg(quote_ident(attname), ', ' order by attnum) as columns from pg_attribute
     where attrelid = $1::regclass and attnum > 0 and not attisdropped and attidentity = ''`,
    [table],
  )
  return rows[0].columns
}
