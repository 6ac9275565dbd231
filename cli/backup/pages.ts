/** Reads every page of a database, and compares every index with its table, by PostgreSQL's own amcheck. */
import pg from 'pg'

const schema = 'check_pages'

/**
 * @param url a superuser, on a database that nobody uses: the check locks its tables
 * @returns a sentence about each table and index that is damaged
 */
export async function checkPages(url: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(`create schema ${schema}; create extension amcheck schema ${schema}`)
    const faults = [...(await checkTables(client)), ...(await checkIndexes(client))]
    await client.query(`drop schema ${schema} cascade`)
    return faults
  } finally {
    await client.end()
  }
}

type Relation = { oid: number; name: string }

async function checkTables(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<Relation>(
    `select oid, oid::regclass::text as name from pg_class where relkind in ('r', 'm', 't') and relpersistence = 'p'`,
  )
  return checkEach(rows, async ({ oid, name }) => {
    const found = await client.query<{ blkno: string; msg: string }>(
      `select blkno, msg from ${schema}.verify_heapam($1)`,
      [oid],
    )
    return found.rows.map(({ blkno, msg }) => `table ${name}, page ${blkno}: ${msg}`)
  })
}

async function checkIndexes(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<Relation>(
    `select c.oid, c.oid::regclass::text as name
     from pg_index i join pg_class c on c.oid = i.indexrelid join pg_am a on a.oid = c.relam
     where a.amname = 'btree' and c.relkind = 'i' and c.relpersistence = 'p' and i.indisvalid`,
  )
  return checkEach(rows, async ({ oid }) => {
    // Every row of the table has its entry, and no value that is unique is there twice.
    await client.query(`select ${schema}.bt_index_parent_check($1, true, false, true)`, [oid])
    return []
  })
}

/** What PostgreSQL refuses to read is a fault too, and no reason not to read the others. */
async function checkEach(relations: Relation[], check: (relation: Relation) => Promise<string[]>): Promise<string[]> {
  const faults: string[] = []
  for (const relation of relations)
    try {
      faults.push(...(await check(relation)))
    } catch (error) {
      if ((error as { severity?: string }).severity !== 'ERROR') throw error
      faults.push(`${relation.name}: ${(error as Error).message}`)
    }
  return faults
}
