import { createSecretKey, type KeyObject } from 'node:crypto'
import { parsed, parseKeyRing, port, readEnvironment, serverUrl, wholeNumber } from '@workspace-wallet/runtime'
import { z } from 'zod'
import { type Role, roles, type ServiceToken } from './trpc/service-token.ts'

const databaseUrl = serverUrl('postgres', 'postgresql').describe("the PostgreSQL URL of the service's own role")

export const coreSchema = z.object({
  CORE_HOST: z.string().default('127.0.0.1').describe('the address to listen on'),
  CORE_PORT: port.default(8081).describe('the port to listen on'),
  DATABASE_URL: databaseUrl,
  DATABASE_LIST_POOL: wholeNumber(4, 100)
    .default(6)
    .describe('connections for lists: two for those that count or sort, and one kept for workspaces that read none'),
  DATABASE_READ_POOL: wholeNumber(2, 100).default(6).describe('connections for short reads and administration'),
  KEY_ENCRYPTION_KEYS: parsed(parseKeyRing).describe(
    'id:base64 entries of 32 random bytes, separated by commas; the first one encrypts',
  ),
  LEDGER_CHAIN_KEY: parsed(parseChainKey).describe('32 random bytes in base64, the key of the chain over all flows'),
  LEDGER_SHARDS: wholeNumber(1, 16).default(2).describe('batches of transfers that may be under way at once'),
  LEDGER_QUEUE: wholeNumber(1, 1_000_000).default(4096).describe('transfers that may wait in each shard'),
  LOG_LEVEL: z.enum(['debug', 'info', 'warn', 'error', 'silent']).default('info').describe('the least level to log'),
  SERVICE_TOKENS: parsed(parseServiceTokens).describe(
    'name:role:token entries separated by commas; a role is gateway, service, funding or admin; a token has 32 characters or more',
  ),
})
export type CoreConfig = z.infer<typeof coreSchema>

export const migrationSchema = z.object({
  DATABASE_URL: databaseUrl,
  MIGRATION_DATABASE_URL: serverUrl('postgres', 'postgresql').describe(
    'the PostgreSQL URL of the role that owns the schema',
  ),
})

/** Core's configuration, from the environment. @throws ConfigurationError */
export const coreConfig = (): CoreConfig => readEnvironment(coreSchema, process.env)

/** The migration step's configuration, from the environment. @throws ConfigurationError */
export const migrationConfig = () => readEnvironment(migrationSchema, process.env)

function parseChainKey(text: string): KeyObject {
  const bytes = Buffer.from(text, 'base64')
  if (bytes.length !== 32) throw new Error('must be 32 random bytes in base64')
  return createSecretKey(bytes)
}

function parseServiceTokens(text: string): ServiceToken[] {
  const tokens = text.split(',').map(entry => {
    const [name = '', role = '', token = '', ...rest] = entry.trim().split(':')
    // A token with a colon in it would be cut there.
    if (rest.length > 0 || !/^[\w-]{1,32}$/.test(name) || !roles.includes(role as Role) || token.length < 32)
      throw new Error('needs entries of the form name:role:token, the token of 32 characters or more')
    return { name, role: role as Role, token }
  })
  if (new Set(tokens.map(({ token }) => token)).size < tokens.length) throw new Error('gives one token twice')
  return tokens
}
