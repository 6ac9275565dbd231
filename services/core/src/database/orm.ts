import type { EntityClass, MigrationObject } from '@mikro-orm/core'
import { Migrator } from '@mikro-orm/migrations'
import {
  type InferClassEntityDB,
  MikroORM,
  type PostgreSqlConnection,
  type SqlEntityManager,
} from '@mikro-orm/postgresql'
import type { Pool } from 'pg'
import { BindingDriver } from './bound-values.ts'
import { runTransaction } from './one-place.ts'
import { type PoolOptions, poolConfig } from './pool.ts'
import { RowSigner } from './row-signer.ts'
import { schemaOf, withoutSchema } from './schema.ts'

export type Orm = Awaited<ReturnType<typeof openOrm>>
export type { SqlEntityManager as Em }

/** With a `chainKey`, the unit of work also signs the rows that it writes (see row-signer.ts), which signed entities require. */
type OrmOptions = PoolOptions & {
  entities?: readonly EntityClass[]
  migrations?: readonly MigrationObject[]
}

/** MikroORM on one PostgreSQL, with its own pool. */
export function openOrm(url: string, { entities = [], migrations = [], ...pool }: OrmOptions) {
  return MikroORM.init({
    driver: BindingDriver,
    clientUrl: withoutSchema(url),
    entities: [...entities],
    extensions: [Migrator],
    subscribers: pool.chainKey ? [new RowSigner(pool.chainKey)] : [],
    // Entities and migrations are listed: nothing is discovered from the file system or cached on it.
    discovery: { warnWhenNoEntities: false },
    metadataCache: { enabled: false },
    migrations: {
      migrationsList: [...migrations],
      tableName: `${schemaOf(url)}.mikro_orm_migrations`,
      snapshot: false,
    },
    ensureDatabase: false,
    preferTs: true,
    allowGlobalContext: false,
    driverOptions: poolConfig(url, pool),
  })
}

/** The pool of the ORM, for prepared statements (see statement.ts). */
export async function poolOf(orm: Orm): Promise<Pool> {
  return (orm.em.getConnection() as PostgreSqlConnection).getNativeClient()
}

/**
 * Runs a transaction. Not with `em.transactional`: MikroORM 7.2.1 never returns a connection to the pool that is lost before
 * the transaction ends, so a few lost connections would exhaust the pool.
 */
export function transact<Result>(orm: Orm, action: (em: SqlEntityManager) => Promise<Result>): Promise<Result> {
  const em = orm.em.fork()
  const attempt = () =>
    em
      .getKysely()
      .transaction()
      .execute(transaction => {
        em.setTransactionContext(transaction)
        return action(em)
      })
  return runTransaction(orm, attempt)
}

const naming = { tableNamingStrategy: 'entity', columnNamingStrategy: 'property', convertValues: true } as const

/**
 * Typed SQL on these entities, in the transaction of `em` if there is one. Tables have the names of entities, columns
 * those of properties, and values their types. Rows that it writes are not signed: use it for unsigned columns only.
 *
 * MikroORM 7.2.1 converts a result twice if its property has a custom type and another name than its column. Select such a
 * property under an alias: it is then not converted at all.
 */
export function kyselyOf<Entity extends EntityClass>(em: SqlEntityManager, ..._entities: Entity[]) {
  return em.getKysely<InferClassEntityDB<Entity, typeof naming>>(naming)
}
