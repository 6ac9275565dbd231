import { bytesArray, type Queryable, run, statement } from '../database/statement.ts'
import { type OperatorRow, storedOperatorColumns } from '../database/tables/operator.ts'
import { type FoundRow, rowFrom, selectColumns, type WithMac } from '../database/tables/table.ts'

/** An operator as stored, and the time of PostgreSQL. */
export type FoundOperator = WithMac<OperatorRow> & { now: Date }

const findOperatorsStatement = statement<FoundRow<typeof storedOperatorColumns> & { now: Date }>(
  'find-operators',
  `select ${selectColumns(storedOperatorColumns, 'o')}, now() as now
   from operator o where o.token_hash = any ($1::bytea[])`,
)

/** The operators with these hashes of tokens. */
export async function findOperators(db: Queryable, hashes: readonly Buffer[]): Promise<FoundOperator[]> {
  const rows = await run(db, findOperatorsStatement, [bytesArray(hashes)])
  return rows.map(({ now, ...found }) => ({ ...rowFrom(storedOperatorColumns, found), now }))
}
