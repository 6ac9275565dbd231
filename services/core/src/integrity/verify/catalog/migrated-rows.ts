import type { KeyObject } from 'node:crypto'
import { currencyDecimals } from '@workspace-wallet/contract'
import { migrationNames } from '../../../database/migrations/names.ts'
import { chainKeyFingerprint } from '../../../ledger/chain/chain-key.ts'
import type { Findings } from '../findings/findings.ts'
import type { Reader } from './reader.ts'

/** A table whose rows nobody changes: the rows as text, and what they must be. */
type Table = { table: string; sql: string; expected: (chainKey: KeyObject) => string[] }

const tables: Table[] = [
  {
    table: 'currency',
    sql: 'select code, decimals from {schema}.currency',
    expected: () => Array.from(currencyDecimals, ([code, decimals]) => `${code} ${decimals}`),
  },
  {
    table: 'mikro_orm_migrations',
    sql: 'select name from {schema}.mikro_orm_migrations',
    expected: () => [...migrationNames],
  },
  {
    table: 'chain_key',
    sql: 'select fingerprint from {schema}.chain_key',
    expected: chainKey => [`\\x${chainKeyFingerprint(chainKey).toString('hex')}`],
  },
]

/** Checks the rows that no MAC covers, because nobody changes them after the migration step or the first start of core. */
export async function checkMigratedRows(snapshot: Reader, chainKey: KeyObject, findings: Findings): Promise<void> {
  for (const { table, sql, expected } of tables) {
    const found = (await snapshot.rows(sql)).map(row => row.join(' '))
    const missing = expected(chainKey).filter(row => !found.includes(row))
    const added = found.filter(row => !expected(chainKey).includes(row))
    const report = (message: string) =>
      findings.add({ rule: 'database-row', message, ids: { object: `table ${table}` } })
    if (missing.length > 0) report(`it lacks ${missing.join(', ')}`)
    if (added.length > 0) report(`it has ${added.join(', ')}, which the service did not write`)
  }
}
