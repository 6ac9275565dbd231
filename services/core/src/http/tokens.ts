import { hash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { TRPCError } from '@trpc/server'
import { findOperatorByToken, type TokenFault } from '../operators/access.ts'
import type { Core } from '../trpc/context.ts'
import { toTRPCError } from '../trpc/errors.ts'
import type { CallerToken, ServiceToken } from '../trpc/service-token.ts'

export type TokenTable = { digest: Buffer; token: Pick<ServiceToken, 'name' | 'role'> }[]

/** Stores only digests of the tokens. */
export function tokenTable(tokens: ServiceToken[]): TokenTable {
  return tokens.map(({ token, name, role }) => ({ digest: hash('sha256', token, 'buffer'), token: { name, role } }))
}

/**
 * The token of an `Authorization: Bearer …` header: one of SERVICE_TOKENS, else that of an operator.
 *
 * @throws TRPCError UNAUTHORIZED; SERVICE_UNAVAILABLE if operators cannot be read
 */
export async function authenticate(core: Core, table: TokenTable, { headers }: IncomingMessage): Promise<CallerToken> {
  const [, token] = /^Bearer (.+)$/.exec(headers.authorization ?? '') ?? []
  if (token === undefined) throw unauthorized('a token is required: Authorization: Bearer …')
  const serviceToken = findServiceToken(table, token)
  if (serviceToken) return serviceToken
  const found = await findOperatorByToken(core, token).catch(error => {
    throw toTRPCError(error, core, { path: 'authentication', requestId: undefined })
  })
  if (!found) throw unauthorized('a known token is required: of a service, or of an operator')
  const { operator, fault } = found
  if (fault) throw unauthorized(sentences[fault](operator.name))
  const { name, role, expiresAt } = operator
  return { name, role, expiresAt, isOperator: true }
}

const sentences: Record<TokenFault, (name: string) => string> = {
  DISABLED: name => `the operator ${name} is disabled`,
  EXPIRED: name => `the token of the operator ${name} has expired`,
}

function unauthorized(message: string): TRPCError {
  return new TRPCError({ code: 'UNAUTHORIZED', message })
}

/** Compares with every entry, each in constant time. */
function findServiceToken(table: TokenTable, text: string): TokenTable[number]['token'] | null {
  const digest = hash('sha256', text, 'buffer')
  let found: TokenTable[number]['token'] | null = null
  for (const entry of table) if (timingSafeEqual(entry.digest, digest)) found = entry.token
  return found
}
