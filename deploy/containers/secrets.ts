/**
 * The first step of `docker compose up`. It creates every secret once, and writes for each container the files that it
 * needs and no others: its secrets, and configuration that the container's user may be unable to read in the checkout.
 *
 * `node deploy/containers/secrets.ts DIRECTORY`. DIRECTORY contains a volume for each consumer, and `all`, which no
 * consumer mounts: its secrets.json is the master copy, to be backed up separately from the database. Each run rewrites
 * the other files, so a change of the master copy reaches them.
 */
import { createHash } from 'node:crypto'
import { glob, mkdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readJson, writePrivateFile, writePrivateJson } from '../../cli/start/private-file.ts'
import {
  coreSecrets,
  courierSecrets,
  gatewaySecrets,
  makeSecrets,
  makeToken,
  requireComplete,
} from '../../cli/start/secrets.ts'

const makeAll = () => ({
  ...makeSecrets(),
  ownerPassword: makeToken(),
  archivePassword: makeToken(),
  redisPassword: makeToken(),
  redisHealthPassword: makeToken(),
  replicationPassword: makeToken(),
  patroniPassword: makeToken(),
  grafanaPassword: makeToken(),
  checkpointToken: makeToken(),
})
type Secrets = ReturnType<typeof makeAll>

/** User IDs in the images. Each container runs as one of them, and only that user may read its files. */
const users = { node: 1000, postgres: 999, redis: 999, haproxy: 99, prometheus: 65534, grafana: 472 }

type Consumer = { user: number; files: Record<string, string> }

async function filesOf(secrets: Secrets): Promise<Record<string, Consumer>> {
  const databaseUrl = (role: string, password: string) => `postgresql://${role}:${password}@postgres:5432/wallet`
  const serviceUrl = databaseUrl('wallet_service', secrets.servicePassword)
  const own = coreSecrets(secrets)
  return {
    postgres: {
      user: users.postgres,
      files: {
        'superuser-password': secrets.superuserPassword,
        'owner-password': secrets.ownerPassword,
        // Of the members of a cluster (docker-compose.ha.yml).
        'replication-password': secrets.replicationPassword,
        'patroni-password': secrets.patroniPassword,
        'archive-password': secrets.archivePassword,
      },
    },
    'postgres-init': { user: users.postgres, files: { 'owner.sql': await ownFile('owner.sql') } },
    archive: { user: users.postgres, files: { pgpass: `postgres:5432:*:wallet_archive:${secrets.archivePassword}` } },
    redis: {
      user: users.redis,
      files: { 'redis.conf': redisUsers(secrets), 'health-password': secrets.redisHealthPassword },
    },
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
        ...own,
        SERVICE_TOKENS: `${own.SERVICE_TOKENS},checkpoints:viewer:${secrets.checkpointToken}`,
      },
    },
    courier: { user: users.node, files: courierSecrets(secrets) },
    gateway: {
      user: users.node,
      files: { ...gatewaySecrets(secrets), REDIS_URL: `redis://gateway:${secrets.redisPassword}@redis:6379` },
    },
    admin: { user: users.node, files: { CORE_TOKEN: secrets.adminToken } },
    checkpoints: { user: users.node, files: { CORE_TOKEN: secrets.checkpointToken } },
    grafana: { user: users.grafana, files: { 'admin-password': secrets.grafanaPassword } },
    'balancer-config': { user: users.haproxy, files: { 'haproxy.cfg': await ownFile('haproxy.cfg') } },
    'prometheus-config': {
      user: users.prometheus,
      files: await filesIn('../observability/prometheus', '{prometheus.yml,rules/*.yml}'),
    },
    'grafana-config': {
      user: users.grafana,
      files: await filesIn('../observability/grafana', '{provisioning,dashboards}/**/*.{yml,json}'),
    },
  }
}

function ownFile(name: string): Promise<string> {
  return readFile(new URL(name, import.meta.url), 'utf8')
}

/** The files of a folder that match, by their paths in it. */
async function filesIn(folder: string, pattern: string): Promise<Record<string, string>> {
  const cwd = fileURLToPath(new URL(folder, import.meta.url))
  const files: Record<string, string> = {}
  for await (const path of glob(pattern, { cwd })) files[path] = await readFile(join(cwd, path), 'utf8')
  return files
}

/**
 * The rights of a gateway: what gateway/src/auth/nonces sends, and what its scripts call, each with the keys that it needs.
 * Redis checks the commands of a script one by one. A nonce may only be the target of RENAMENX, which fails if the nonce
 * exists (`%W` does not let it be the source), and of EXISTS: so no command of this user ends the life of a nonce early, or
 * shortens it (docs/decisions/0035). docs/operations.md has the same rules.
 */
const gatewayRules = [
  '-@all +info +config|get +ping +time +script|load',
  '(+eval +evalsha ~nonces:* ~nonce:* ~limit:*)',
  '(+get +set ~nonces:generation:* ~nonces:claim:* ~limit:*)',
  '(+renamenx +exists ~nonces:claim:* %W~nonce:*)',
].join(' ')

/**
 * The ACL of Redis. The health check has PING, and a password: the limits that Redis has for clients that have not logged in do not hold
 * for a user without one. Nobody can log in as `default`, but it keeps its rights: Redis replays its append-only file as that user, and
 * skips commands that it may not run.
 */
function redisUsers({ redisPassword, redisHealthPassword }: Secrets): string {
  const hashOf = (password: string) => createHash('sha256').update(password).digest('hex')
  return `user default off ~* &* +@all
user gateway on #${hashOf(redisPassword)} ${gatewayRules}
user health on #${hashOf(redisHealthPassword)} -@all +ping
`
}

async function loadAll(path: string): Promise<Secrets> {
  const stored = await readJson(path)
  if (stored !== undefined) return requireComplete(path, stored, makeAll())
  const made = makeAll()
  await writePrivateJson(path, made)
  console.log(`Created new secrets in ${path}.`)
  return made
}

const [directory] = process.argv.slice(2)
if (!directory) throw new Error('Name the directory for the secrets: node deploy/containers/secrets.ts DIRECTORY')
await mkdir(join(directory, 'all'), { recursive: true })
// The step runs as root only in its container. Elsewhere all files belong to the caller.
const isRoot = process.getuid?.() === 0
const secrets = await loadAll(join(directory, 'all', 'secrets.json'))
for (const [consumer, { user, files }] of Object.entries(await filesOf(secrets))) {
  for (const [name, text] of Object.entries(files)) {
    const path = join(directory, consumer, name)
    await mkdir(dirname(path), { recursive: true })
    await writePrivateFile(path, text, 0o400, isRoot ? user : undefined)
  }
}
console.log(`Wrote the secrets of all containers to ${directory}.`)
