import type { KeyObject } from 'node:crypto'
import type { EntityClass, MigrationObject } from '@mikro-orm/core'
import { Migrator } from '@mikro-orm/migrations'
import { MikroORM, type PostgreSqlConnection, type SqlEntityManager } from '@mikro-orm/postgresql'
import type { Pool } from 'pg'
import { migrations } from './migrations/index.ts'
import { RowSigner } from './row-signer.ts'

export type Orm = Awaited<ReturnType<typeof openOrm>>
export type { SqlEntityManager as Em }

/** How long a statement may run as seen from here; PostgreSQL's own limits (see grants.ts) end it earlier. */
const defaultQueryTimeoutMs = 12_000
const connectTimeoutMs = 2_000
/** Said when connecting, it counts more than what the role or the database has been set to. PostgreSQL's own names come first. */
const startOptions = '-c search_path=public,pg_temp'

/**
 * MikroORM on one PostgreSQL, with a pool of its own. `pipeline` lets statements follow each other without
 * waiting for answers, for transactions that are written out by hand (see ledger/batch.ts).
 */
export async function openOrm(
  url: string,
  pool: {
    name: string
    max: number
    entities: readonly EntityClass[]
    pipeline?: boolean
    queryTimeoutMs?: number
    /** Signs what the unit of work writes (see row-signer.ts). Without it, nothing can be written that is signed. */
    chainKey?: KeyObject
    migrations?: readonly MigrationObject[]
  },
) {
  return MikroORM.init({
    clientUrl: url,
    entities: [...pool.entities],
    discovery: { warnWhenNoEntities: false },
    extensions: [Migrator],
    subscribers: pool.chainKey ? [new RowSigner(pool.chainKey)] : [],
    // Everything is listed: nothing is discovered from the file system, nothing is cached on it.
    metadataCache: { enabled: false },
    migrations: { migrationsList: [...(pool.migrations ?? migrations)], snapshot: false },
    ensureDatabase: false,
    preferTs: true,
    allowGlobalContext: false,
    pool: { min: 0, max: pool.max, idleTimeoutMillis: 60_000 },
    driverOptions: {
      // The ORM reads host, role and database from the URL; the driver reads its parameters too (sslmode).
      connectionString: url,
      options: startOptions,
      application_name: `core ${pool.name}`,
      pipeline: pool.pipeline ?? false,
      keepAlive: true,
      connectionTimeoutMillis: connectTimeoutMs,
      query_timeout: pool.queryTimeoutMs ?? defaultQueryTimeoutMs,
    },
  })
}

/** The pool under an ORM, for prepared statements (see statement.ts). */
export async function poolOf(orm: Orm): Promise<Pool> {
  return (orm.em.getConnection() as PostgreSqlConnection).getNativeClient()
}
