/** Signs rows that a test has written, as core would: then their content is wrong, and not their MAC. */
import { createSecretKey, type KeyObject } from 'node:crypto'
import type pg from 'pg'
import { apiKeyColumns } from '../../services/core/src/database/tables/api-key.ts'
import { holdColumns } from '../../services/core/src/database/tables/hold.ts'
import { ledgerColumns } from '../../services/core/src/database/tables/ledger.ts'
import { limitColumns } from '../../services/core/src/database/tables/spending-limit.ts'
import { type Columns, rowFrom, rowMac, selectColumns } from '../../services/core/src/database/tables/table.ts'
import { walletColumns } from '../../services/core/src/database/tables/wallet.ts'
import { webhookColumns } from '../../services/core/src/database/tables/webhook.ts'
import { connect } from './database.ts'

const tables = {
  api_key: apiKeyColumns,
  hold: holdColumns,
  ledger: ledgerColumns,
  spending_limit: limitColumns,
  wallet: walletColumns,
  webhook: webhookColumns,
}

/**
 * @param database a connection or URL, with a role that may write the table
 * @param chainKey LEDGER_CHAIN_KEY of core: 32 bytes in base64
 * @param where the condition for the rows (default: all)
 */
export async function signRows(
  database: pg.Client | string,
  chainKey: string,
  table: keyof typeof tables,
  where = 'true',
): Promise<void> {
  const key = createSecretKey(Buffer.from(chainKey, 'base64'))
  const client = typeof database === 'string' ? await connect(database) : database
  try {
    await signRowsOf(client, key, table, tables[table], where)
  } finally {
    if (typeof database === 'string') await client.end()
  }
}

async function signRowsOf<Of extends Columns>(
  client: pg.Client,
  key: KeyObject,
  table: keyof typeof tables,
  columns: Of,
  where: string,
): Promise<void> {
  const { rows } = await client.query(
    `select ${selectColumns(columns, table)}, ctid as row from ${table} where ${where}`,
  )
  for (const stored of rows) {
    const revision = Number(stored.revision) + 1
    const mac = rowMac(key, table, columns, rowFrom(columns, { ...stored, revision }))
    await client.query(`update ${table} set revision = $1, mac = $2 where ctid = $3`, [revision, mac, stored.row])
  }
}
