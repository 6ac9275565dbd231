/** `npm run database -- distribute|placement|move`: the buckets of a Citus cluster, with the URL of the owner. docs/scale.md has the steps. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { table } from './admin/table.ts'
import { parseCount } from './admin/values.ts'
import { anyText, UsageError, type Values } from './command-line/flags.ts'
import { createCommand, createGroup, runProgram } from './command-line/program.ts'
import { connect, query } from './processes/database.ts'

const migrateScript = fileURLToPath(new URL('../services/core/src/migrate.ts', import.meta.url))

const bucketFlag = { value: 'SCHEMA', help: 'the bucket, such as bucket_1', required: true, parse: anyText } as const
const placementFlags = { json: { help: 'print one JSON object' } } as const

const program = createGroup('npm run database --', 'create, list and move the buckets of a Citus cluster', [
  createCommand({
    name: 'distribute',
    help: 'create buckets: schemas that Citus spreads over its workers, each with the tables of the service',
    flags: {
      buckets: { value: 'N', help: 'how many buckets there are afterwards', required: true, parse: parseCount },
    },
    examples: ['--buckets 8'],
    notes:
      'Buckets that exist are migrated, and none is removed. It also runs the migration step of a new version, in all buckets.',
    run: ({ buckets }) => distribute(buckets),
  }),
  createCommand({
    name: 'placement',
    help: 'list the buckets, the worker of each, and its size',
    flags: placementFlags,
    examples: ['', '--json'],
    run: printPlacement,
  }),
  createCommand({
    name: 'move',
    help: 'move a bucket to another worker, without stopping the service',
    flags: {
      bucket: bucketFlag,
      to: { value: 'HOST:PORT', help: 'the worker, as `placement` shows it', required: true, parse: parseAddress },
    },
    examples: ['--bucket bucket_1 --to worker-2:5432'],
    run: ({ bucket, to }) => move(bucket, to),
  }),
]).addHelpText(
  'after',
  `
MIGRATION_DATABASE_URL leads to the coordinator, with a superuser: only one may create a schema that Citus distributes. distribute
also needs DATABASE_URL, with the role and the password of the service.

Examples:
  npm run database -- distribute --buckets 8
  npm run database -- move --bucket bucket_1 --to worker-2:5432`,
)

type Bucket = { bucket: string; worker: string; bytes: number }

function ownerUrl(): string {
  return withoutSchema(variable('MIGRATION_DATABASE_URL'))
}

function variable(name: string): string {
  const value = process.env[name]
  if (value === undefined || !URL.canParse(value))
    throw new UsageError(`${name} must be set to the URL of the coordinator.`)
  return value
}

function withoutSchema(url: string): string {
  return withSchema(url, null)
}

function withSchema(url: string, schema: string | null): string {
  const target = new URL(url)
  target.searchParams.delete('schema')
  if (schema !== null) target.searchParams.set('schema', schema)
  return target.href
}

/** @throws Error on a PostgreSQL without Citus, and on a node that is not the coordinator */
async function requireCoordinator(url: string): Promise<void> {
  const [extension] = await query(url, `select from pg_extension where extname = 'citus'`)
  if (!extension)
    throw new Error(
      'This database has no Citus: a single PostgreSQL needs no buckets, and several ones are places of DATABASE_URLS (docs/scale.md).',
    )
  const [node] = await query(url, 'select citus_is_coordinator() as "isCoordinator"')
  if (!node!.isCoordinator)
    throw new Error('MIGRATION_DATABASE_URL leads to a worker: give it the address of the coordinator.')
}

/** Creates the schemas that are missing, and runs the migration step in all of them. */
async function distribute(buckets: number): Promise<void> {
  const owner = ownerUrl()
  const service = variable('DATABASE_URL')
  await requireCoordinator(owner)
  const names = Array.from({ length: buckets }, (_, at) => `bucket_${at + 1}`)
  for (const name of names) {
    await createBucket(owner, name)
    await migrate(withSchema(owner, name), withSchema(service, name))
    console.log(`${name} is ready.`)
  }
  const { username, host, pathname } = new URL(service)
  const urls = names.map(name => `postgres://${username}:…@${host}${pathname}?schema=${name}`)
  console.log(`Give all cores these places:\nDATABASE_URL=${urls[0]}`)
  if (urls.length > 1) console.log(`DATABASE_URLS='${urls.slice(1).join(' ')}'`)
}

async function createBucket(owner: string, name: string): Promise<void> {
  const client = await connect(owner)
  try {
    const { rows } = await client.query(
      `select exists (select from pg_dist_schema where schemaid = s.oid) as "isBucket" from pg_namespace s where nspname = $1`,
      [name],
    )
    if (rows[0]?.isBucket === false) throw new Error(`The schema ${name} exists and is not distributed: rename it.`)
    if (rows.length > 0) return
    await client.query('set citus.enable_schema_based_sharding = on')
    await client.query(`create schema ${name}`)
  } finally {
    await client.end()
  }
}

async function migrate(owner: string, service: string): Promise<void> {
  const env = { PATH: process.env.PATH, MIGRATION_DATABASE_URL: owner, DATABASE_URL: service }
  await promisify(execFile)(process.execPath, [migrateScript], { env }).catch(({ stderr, message }) => {
    throw new Error(stderr || message)
  })
}

async function readPlacement(url: string): Promise<Bucket[]> {
  const rows = await query(
    url,
    `select n.nspname as bucket, nodename || ':' || nodeport as worker, sum(shard_size)::float8 as bytes
     from citus_shards join pg_class c on c.oid = table_name join pg_namespace n on n.oid = c.relnamespace
     where n.oid in (select schemaid::oid from pg_dist_schema) group by 1, 2 order by 1`,
  )
  return rows as Bucket[]
}

async function printPlacement({ json }: Values<typeof placementFlags>): Promise<void> {
  const url = ownerUrl()
  await requireCoordinator(url)
  const buckets = await readPlacement(url)
  if (json) return console.log(JSON.stringify({ buckets }))
  const rows = buckets.map(({ bucket, worker, bytes }) => [bucket, worker, `${Math.ceil(bytes / 2 ** 20)} MiB`])
  console.log(rows.length > 0 ? table(['BUCKET', 'WORKER', 'SIZE'], rows) : 'There are no buckets yet.')
}

async function move(bucket: string, { host, port }: { host: string; port: number }): Promise<void> {
  const url = ownerUrl()
  await requireCoordinator(url)
  const placed = (await readPlacement(url)).find(each => each.bucket === bucket)
  if (!placed) throw new Error(`There is no bucket ${bucket}: see npm run database -- placement.`)
  if (placed.worker === `${host}:${port}`) return console.log(`${bucket} is on ${placed.worker} already.`)
  await raiseSequences(url, bucket, { host, port })
  await query(url, `select citus_schema_move($1::regnamespace, $2, $3, 'force_logical')`, [bucket, host, port])
  console.log(`${bucket} has moved from ${placed.worker} to ${host}:${port}.`)
}

/** More rows than are added to a table while its bucket moves. */
const margin = 10_000_000

/**
 * Makes the numbers that the worker gives to new rows continue those of the bucket: Citus gives each worker numbers of its own, so later
 * rows could have lower ones, and lists are in the order of numbers.
 */
async function raiseSequences(
  url: string,
  bucket: string,
  { host, port }: { host: string; port: number },
): Promise<void> {
  const worker = await connect(Object.assign(new URL(url), { host: `${host}:${port}` }).href)
  try {
    // For statements on this worker only.
    await worker.query('set citus.enable_ddl_propagation = off')
    for (const name of ['audit', 'refusal']) {
      const sequence = `${bucket}.${name}_id_seq`
      const { rows } = await worker.query(`select coalesce(max(id), 0) + ${margin} as next from ${bucket}.${name}`)
      await worker.query(
        `alter sequence ${sequence} minvalue 1 maxvalue ${Number.MAX_SAFE_INTEGER} restart ${rows[0].next}`,
      )
    }
  } finally {
    await worker.end()
  }
}

function parseAddress(text: string): { host: string; port: number } {
  const [, host, port] = /^(.+):(\d{1,5})$/.exec(text) ?? []
  if (!host) throw new Error('must be an address such as worker-2:5432')
  return { host, port: Number(port) }
}

await runProgram(program, process.argv.slice(2))
