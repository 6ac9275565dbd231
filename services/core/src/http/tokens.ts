import { hash, timingSafeEqual } from 'node:crypto'
import type { ServiceToken } from '../trpc/service-token.ts'

export type TokenTable = { digest: Buffer; token: Pick<ServiceToken, 'name' | 'role'> }[]

/** Stores only digests of the tokens. */
export function tokenTable(tokens: ServiceToken[]): TokenTable {
  return tokens.map(({ token, name, role }) => ({ digest: hash('sha256', token, 'buffer'), token: { name, role } }))
}

/** The token of an `Authorization: Bearer …` header; null if unknown. Compares with every entry, each in constant time. */
export function findToken(table: TokenTable, header: string | undefined): TokenTable[number]['token'] | null {
  if (!header?.startsWith('Bearer ')) return null
  const digest = hash('sha256', header.slice('Bearer '.length), 'buffer')
  let found: TokenTable[number]['token'] | null = null
  for (const entry of table) if (timingSafeEqual(entry.digest, digest)) found = entry.token
  return found
}
