/** Signs rows that a test has written, as core would: then their content is wrong, and not their MAC. */
import { createSecretKey, type KeyObject } from 'node:crypto'
import { Decimal } from '@workspace-wallet/contract'
import type pg from 'pg'
import {
  apiKeyMac,
  holdMac,
  ledgerMac,
  limitMac,
  walletMac,
  webhookMac,
} from '../../services/core/src/database/signed-rows.ts'
import { connect } from './database.ts'

type Row = Record<string, unknown>

/** The MAC of a row by table. Columns have the names of the entities. */
const macs = {
  wallet: (key: KeyObject, row: Row) =>
    walletMac(key, decimals(row, ['balance', 'held']) as Parameters<typeof walletMac>[1]),
  hold: (key: KeyObject, row: Row) =>
    holdMac(key, decimals(row, ['captured', 'remaining']) as Parameters<typeof holdMac>[1]),
  spending_limit: (key: KeyObject, row: Row) =>
    limitMac(key, decimals(row, ['perTransfer', 'perDay', 'spent']) as Parameters<typeof limitMac>[1]),
  ledger: (key: KeyObject, row: Row) => ledgerMac(key, row as Parameters<typeof ledgerMac>[1]),
  api_key: (key: KeyObject, row: Row) => apiKeyMac(key, row as Parameters<typeof apiKeyMac>[1]),
  webhook: (key: KeyObject, row: Row) => webhookMac(key, row as Parameters<typeof webhookMac>[1]),
}

/**
 * @param database a connection or URL, with a role that may write the table
 * @param chainKey LEDGER_CHAIN_KEY of core: 32 bytes in base64
 * @param where the condition for the rows (default: all)
 */
export async function signRows(
  database: pg.Client | string,
  chainKey: string,
  table: keyof typeof macs,
  where = 'true',
): Promise<void> {
  const key = createSecretKey(Buffer.from(chainKey, 'base64'))
  const client = typeof database === 'string' ? await connect(database) : database
  try {
    const { rows } = await client.query(
      `select *, revision + 1 as revision, ctid as row${table === 'spending_limit' ? ', day::text' : ''} from ${table} where ${where}`,
    )
    for (const stored of rows) {
      const mac = macs[table](key, named(stored))
      await client.query(`update ${table} set revision = $1, mac = $2 where ctid = $3`, [
        stored.revision,
        mac,
        stored.row,
      ])
    }
  } finally {
    if (typeof database === 'string') await client.end()
  }
}

const decimals = (row: Row, names: string[]) => ({
  ...row,
  ...Object.fromEntries(names.map(name => [name, row[name] === null ? null : new Decimal(row[name] as string)])),
})

const counts = [
  'countedFrom',
  'holdCount',
  'limitCount',
  'number',
  'orderCount',
  'position',
  'revision',
  'secretVersion',
  'sequence',
  'walletCount',
  'walletNumber',
]

function named(stored: Row): Row {
  return Object.fromEntries(
    Object.entries(stored).map(([column, value]) => {
      const name = column.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase())
      return [name, counts.includes(name) && value !== null ? Number(value) : value]
    }),
  )
}
