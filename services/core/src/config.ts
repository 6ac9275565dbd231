import { createSecretKey, type KeyObject } from 'node:crypto'
import {
  allowedNetworks,
  parsed,
  parseKeyRing,
  port,
  readEnvironment,
  serverUrl,
  wholeNumber,
} from '@workspace-wallet/runtime'
import { tracingVariables } from '@workspace-wallet/runtime/start-tracing'
import { z } from 'zod'
import { hasUsableSchema } from './database/schema.ts'
import { parseSigningKeys } from './signing/signing-keys.ts'
import { type Role, roles, type ServiceToken } from './trpc/service-token.ts'

const postgresUrl = serverUrl('postgres', 'postgresql').refine(hasUsableSchema, {
  error: 'has a schema with other characters than a-z, 0-9 and _, or that begins with pg_ or a digit',
})
const databaseUrl = postgresUrl.describe(
  "PostgreSQL URL of the service's role. Its parameter `schema` names the schema of the tables. Default: public",
)

const postgresUrls = parsed(text =>
  text
    .split(/\s+/)
    .filter(url => url !== '')
    .map(url => postgresUrl.parse(url)),
).default([])
const databaseUrls = postgresUrls.describe(
  'PostgreSQL URLs of further places, separated by spaces: workspaces are spread over them and DATABASE_URL (docs/scale.md)',
)

export const coreSchema = z.object({
  BODY_MEMORY_BYTES: wholeNumber(8_388_608, 1_073_741_824)
    .optional()
    .describe(
      'Memory for the bodies of all calls until they are answered, in bytes. One service token gets at most half of it. Default: an eighth of the largest heap that Node allows, from 16 to 128 MiB',
    ),
  CORE_HOST: z.string().default('127.0.0.1').describe('Address to listen on'),
  CORE_PORT: port.default(8081).describe('Port to listen on'),
  DATA_DIR: z
    .string()
    .optional()
    .describe(
      'A directory on the disk of the database, whose free space /metrics then has. `npm start` sets it to its data directory',
    ),
  DATABASE_URL: databaseUrl,
  DATABASE_LIST_POOL: wholeNumber(5, 100)
    .default(8)
    .describe(
      'Connections for lists: two for lists that count or sort, two for events, one reserved for workspaces that read no other list, the others for pages',
    ),
  DATABASE_PLACE: wholeNumber(0, 10_000)
    .optional()
    .describe(
      'The number of the place of DATABASE_URL, for a core that verifies this place without the others: `npm run backup -- check` sets it (docs/scale.md)',
    ),
  DATABASE_POOLER_URL: serverUrl('postgres', 'postgresql')
    .optional()
    .describe(
      'URL of PgBouncer in transaction mode, for reads, lists and postings. Core adds _reads, _lists and _ledger to the name of the database. DATABASE_URL still leads to PostgreSQL itself',
    ),
  DATABASE_READ_POOL: wholeNumber(2, 100).default(10).describe('Connections for short reads and administration'),
  DATABASE_URLS: databaseUrls,
  DATABASE_WRITERS: parsed(text => text.split(',').map(name => name.trim()))
    .optional()
    .describe(
      'Comma-separated names of the roles that may write to the database besides that of DATABASE_URL. `ledger verify` reports all others. Default: the role that initialized the server and the owner of the tables',
    ),
  KEY_ENCRYPTION_KEYS: parsed(parseKeyRing).describe(
    'Comma-separated id:base64 entries, each of 32 random bytes. The first one encrypts, all of them decrypt',
  ),
  LEDGER_CHAIN_KEY: parsed(parseChainKey).describe('Key of all MACs in the database: 32 random bytes in base64'),
  LEDGER_SHARDS: wholeNumber(1, 16)
    .default(2)
    .describe(
      'Batches of transfers that may be posted at the same time, and as many more for workspaces with many waiting commands',
    ),
  LEDGER_QUEUE: wholeNumber(1, 1_000_000)
    .default(4096)
    .describe('Commands that may wait in each of LEDGER_SHARDS queues'),
  LOG_LEVEL: z
    .enum(['debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe('Lowest level that is logged'),
  ...tracingVariables,
  RECEIPT_KEYS: parsed(parseSigningKeys).describe(
    'Ed25519 keys of receipts: comma-separated id:base64 entries, each of 32 random bytes. The first one signs, all of them verify',
  ),
  SERVICE_TOKENS: parsed(parseServiceTokens).describe(
    'Comma-separated name:role:token entries. A role is gateway, service, funding, courier, admin or viewer; a token has at least 32 characters',
  ),
  VERIFY_EVERY_MINUTES: wholeNumber(0, 44_640)
    .default(60)
    .describe(
      'How often core verifies what has changed in the ledger since the last sound verification, in minutes. 0: core verifies nothing by itself',
    ),
  VERIFY_WHOLE_EVERY_DAYS: wholeNumber(1, 365).default(7).describe('How often core verifies the whole ledger, in days'),
  WEBHOOK_ALLOWED_NETWORKS: allowedNetworks,
})
export type CoreConfig = z.infer<typeof coreSchema>

export const migrationSchema = z.object({
  DATABASE_URL: databaseUrl,
  MIGRATION_DATABASE_URL: postgresUrl.describe(
    'PostgreSQL URL of the role that owns the schema, which is that of DATABASE_URL',
  ),
  DATABASE_URLS: databaseUrls,
  MIGRATION_DATABASE_URLS: postgresUrls.describe(
    'PostgreSQL URLs of the roles that own the schemas of DATABASE_URLS, in the same order',
  ),
})

/** The URLs of the roles that own the schemas of all places, in their order: for who copies rows. @throws ConfigurationError */
export function ownerUrls(environment: NodeJS.ProcessEnv): string[] {
  const { MIGRATION_DATABASE_URL, MIGRATION_DATABASE_URLS } = readEnvironment(ownerSchema, environment)
  return [MIGRATION_DATABASE_URL, ...MIGRATION_DATABASE_URLS]
}

const ownerSchema = migrationSchema.pick({ MIGRATION_DATABASE_URL: true, MIGRATION_DATABASE_URLS: true })

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
    // A token cannot contain a colon: it would be cut off there.
    if (rest.length > 0 || !/^[\w-]{1,32}$/.test(name) || !roles.includes(role as Role) || token.length < 32)
      throw new Error('needs entries of the form name:role:token, the token of 32 characters or more')
    return { name, role: role as Role, token }
  })
  if (new Set(tokens.map(({ token }) => token)).size < tokens.length) throw new Error('has the same token twice')
  return tokens
}
