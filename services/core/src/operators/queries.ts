import type { OperatorRole } from '@workspace-wallet/contract'
import { bytesArray, type Queryable, run, statement } from '../database/statement.ts'
import type { OperatorRow } from '../database/tables/operator.ts'

/** An operator as stored, and the time of PostgreSQL. */
export type FoundOperator = Omit<OperatorRow, 'role' | 'status'> & {
  role: OperatorRole
  status: 'ACTIVE' | 'DISABLED'
  mac: Buffer
  now: Date
}

const findOperatorsStatement = statement<FoundOperator>(
  'find-operators',
  `select name, role, status, token_hash as "tokenHash", token_version as "tokenVersion", expires_at as "expiresAt",
     created_at as "createdAt", updated_at as "updatedAt", revision, mac, now() as now
   from operator where token_hash = any ($1::bytea[])`,
)

/** The operators with these hashes of tokens. */
export function findOperators(db: Queryable, hashes: readonly Buffer[]): Promise<FoundOperator[]> {
  return run(db, findOperatorsStatement, [bytesArray(hashes)])
}
