import type { KeyObject } from 'node:crypto'
import type { EntityClass, MigrationObject } from '@mikro-orm/core'
import { Migrator } from '@mikro-orm/migrations'
import { MikroORM, type PostgreSqlConnection, type SqlEntityManager } from '@mikro-orm/postgresql'
import type { Pool } from 'pg'
import { type PoolOptions, poolConfig } from './pool.ts'
import { RowSigner } from './row-signer.ts'

export type Orm = Awaited<ReturnType<typeof openOrm>>
export type { SqlEntityManager as Em }

type OrmOptions = PoolOptions & {
  entities?: readonly EntityClass[]
  /** Signs what the unit of work writes (see row-signer.ts). Without it, nothing can be written that is signed. */
  chainKey?: KeyObject
  migrations?: readonly MigrationObject[]
}

/** MikroORM on one PostgreSQL, with a pool of its own. */
export function openOrm(url: string, { entities = [], chainKey, migrations = [], ...pool }: OrmOptions) {
  return MikroORM.init({
    clientUrl: url,
    entities: [...entities],
    extensions: [Migrator],
    subscribers: chainKey ? [new RowSigner(chainKey)] : [],
    // Everything is listed: nothing is discovered from the file system, nothing is cached on it.
    discovery: { warnWhenNoEntities: false },
    metadataCache: { enabled: false },
    migrations: { migrationsList: [...migrations], snapshot: false },
    ensureDatabase: false,
    preferTs: true,
    allowGlobalContext: false,
    driverOptions: poolConfig(url, pool),
  })
}

/** The pool under the ORM, for prepared statements (see statement.ts). */
export async function poolOf(orm: Orm): Promise<Pool> {
  return (orm.em.getConnection() as PostgreSqlConnection).getNativeClient()
}
