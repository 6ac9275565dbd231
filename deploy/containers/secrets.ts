/**
 * The first step of `docker compose up`: creates every secret, once, and writes for each container the files that it
 * needs and no others: its secrets, and the configuration that it cannot read from the checkout, whose files may belong
 * to a user with umask 077.
 *
 * `node deploy/containers/secrets.ts DIRECTORY`. Below DIRECTORY is a volume for each consumer, and `all`, which none of them
 * sees: its secrets.json is the original, to be backed up apart from the database. Each run rewrites the files, so that
 * a change of the original reaches them.
 */
import { createHash, randomBytes } from 'node:crypto'
import { chown, mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { readJson, writePrivateJson } from '../../cli/start/private-file.ts'
import { completeSecrets, makeSecrets } from '../../cli/start/secrets.ts'

const token = () => randomBytes(32).toString('base64url')
const makeAll = () => ({ ...makeSecrets(), ownerPassword: token(), redisPassword: token() })
type Secrets = ReturnType<typeof makeAll>

/** Users of the images, by number: a container runs as one of them, and no other user may read its files. */
const users = { node: 1000, postgres: 999, redis: 999, haproxy: 99 }

type Consumer = { user: number; files: Record<string, string> }

async function filesOf(secrets: Secrets): Promise<Record<string, Consumer>> {
  const databaseUrl = (role: string, password: string) => `postgresql://${role}:${password}@postgres:5432/wallet`
  const serviceUrl = databaseUrl('wallet_service', secrets.servicePassword)
  return {
    postgres: {
      user: users.postgres,
      files: { 'superuser-password': secrets.superuserPassword, 'owner-password': secrets.ownerPassword },
    },
    'postgres-init': { user: users.postgres, files: { 'owner.sql': await ownFile('owner.sql') } },
    redis: { user: users.redis, files: { 'redis.conf': redisUsers(secrets.redisPassword) } },
    migrate: {
      user: users.node,
      files: {
        MIGRATION_DATABASE_URL: databaseUrl('wallet_owner', secrets.ownerPassword),
        DATABASE_URL: serviceUrl,
      },
    },
    core: {
      user: users.node,
      files: {
        DATABASE_URL: serviceUrl,
        KEY_ENCRYPTION_KEYS: secrets.keyEncryptionKeys,
        LEDGER_CHAIN_KEY: secrets.ledgerChainKey,
        SERVICE_TOKENS: [
          `gateway:gateway:${secrets.gatewayToken}`,
          `service:service:${secrets.serviceToken}`,
          `funding:funding:${secrets.fundingToken}`,
          `admin:admin:${secrets.adminToken}`,
        ].join(','),
      },
    },
    gateway: {
      user: users.node,
      files: {
        CORE_TOKEN: secrets.gatewayToken,
        KEY_ENCRYPTION_KEYS: secrets.keyEncryptionKeys,
        REDIS_URL: `redis://gateway:${secrets.redisPassword}@redis:6379`,
      },
    },
    admin: { user: users.node, files: { CORE_TOKEN: secrets.adminToken } },
    'balancer-config': { user: users.haproxy, files: { 'haproxy.cfg': await ownFile('haproxy.cfg') } },
  }
}

function ownFile(name: string): Promise<string> {
  return readFile(new URL(name, import.meta.url), 'utf8')
}

/** What gateway/src/auth/nonces sends, and what its scripts call. */
const gatewayCommands = 'eval evalsha script|load info config|get ping time get set exists'.split(' ')
const gatewayKeys = ['nonces:generation', 'nonce:*', 'limit:*']

/**
 * Redis's users: a gateway has the commands and keys that it needs, the health check has PING. Nobody can log in as
 * `default`, but it keeps its rights: Redis reads its append-only file as that user, and would drop what it may not do.
 */
function redisUsers(password: string): string {
  const hash = createHash('sha256').update(password).digest('hex')
  const keys = gatewayKeys.map(pattern => `~${pattern}`).join(' ')
  const commands = gatewayCommands.map(command => `+${command}`).join(' ')
  return `user default off ~* &* +@all
user gateway on #${hash} ${keys} -@all ${commands}
user health on nopass -@all +ping
`
}

async function loadAll(path: string): Promise<Secrets> {
  const stored = await readJson(path)
  if (stored !== undefined) return completeSecrets(path, stored, makeAll())
  const made = makeAll()
  await writePrivateJson(path, made)
  console.log(`Made new secrets in ${path}.`)
  return made
}

/** Writes a file that one user may read and nobody may write. It is there in full or not at all. */
async function writeFor(user: number, path: string, text: string): Promise<void> {
  const draft = `${path}.draft`
  await rm(draft, { force: true })
  const file = await open(draft, 'wx', 0o400)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
  // In its container this runs as root; elsewhere the files are its caller's own.
  if (process.getuid?.() === 0) await chown(draft, user, user)
  await rename(draft, path)
}

const [directory] = process.argv.slice(2)
if (!directory) throw new Error('The directory of the secrets is missing: node deploy/containers/secrets.ts DIRECTORY')
await mkdir(join(directory, 'all'), { recursive: true })
const secrets = await loadAll(join(directory, 'all', 'secrets.json'))
for (const [consumer, { user, files }] of Object.entries(await filesOf(secrets))) {
  await mkdir(join(directory, consumer), { recursive: true })
  for (const [name, text] of Object.entries(files)) await writeFor(user, join(directory, consumer, name), text)
}
console.log(`The secrets are in place below ${directory}.`)
