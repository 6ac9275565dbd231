import type { KeyObject } from 'node:crypto'
import type { Log } from '@workspace-wallet/runtime'
import { batched } from '../database/batched.ts'
import type { Queryable } from '../database/statement.ts'
import { operatorMac } from '../database/tables/operator.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { type FoundOperator, findOperators } from './queries.ts'
import { hashOfToken, hasOperatorChecksum } from './tokens.ts'

type Parts = { accessReads: Queryable; operatorChecksumKey: string; chainKey: KeyObject; log: Log; metrics: Metrics }

/** Why a token that was issued once is refused. */
export type TokenFault = 'DISABLED' | 'EXPIRED'

const hex = (hash: Uint8Array) => Buffer.from(hash).toString('hex')

const readByHash = batched({
  readMany: ({ accessReads }: Parts, hashes: readonly Buffer[]) => findOperators(accessReads, hashes),
  nameOf: { key: hex, row: ({ tokenHash }) => hex(tokenHash) },
  resultOf: (_, row) => row,
  // Otherwise whoever has a token, also one that was disabled, could keep the look-ups of gateways waiting.
  isSerial: true,
})

/**
 * The operator with this token, read anew for each request: operators call seldom, and a disabled one is refused at once by every
 * core. Null if nobody has the token, or if the row was modified or written outside the service.
 */
export async function findOperatorByToken(
  core: Parts,
  token: string,
): Promise<{ operator: FoundOperator; fault: TokenFault | null } | null> {
  if (!hasOperatorChecksum(core.operatorChecksumKey, token)) return null
  const operator = await readByHash(core, hashOfToken(token))
  if (!operator) return null
  if (!operatorMac(core.chainKey, operator).equals(operator.mac)) {
    core.metrics.modifiedRow('operator')
    core.log.fatal(
      { table: 'operator', operator: operator.name },
      'a row was modified outside the service: the operator is refused; run ledger verify',
    )
    return null
  }
  return { operator, fault: faultOf(operator) }
}

function faultOf({ status, expiresAt, now }: FoundOperator): TokenFault | null {
  if (status !== 'ACTIVE') return 'DISABLED'
  return expiresAt && expiresAt <= now ? 'EXPIRED' : null
}
