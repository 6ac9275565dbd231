/** Reads every page of a database, and compares every index with its table, with PostgreSQL's extension amcheck. */
import pg from 'pg'

const schema = 'check_pages'

/**
 * @param url connects as a superuser, to a database that nobody uses: the check locks its tables
 * @returns one phrase for each fault of a table or an index
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
    // Also checks that every row of the table is in the index, and that unique values are unique.
    await client.query(`select ${schema}.bt_index_parent_check($1, true, false, true)`, [oid])
    return []
  })
}

/** Checks all relations. One that PostgreSQL cannot read is a fault and does not end the check. */
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
