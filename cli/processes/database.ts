import pg from 'pg'

/** A connection to the database of a URL. The caller ends it. */
export async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  // Without a listener, the loss of the connection would end this process. The next query fails with it.
  client.on('error', () => {})
  await client.connect()
  return client
}

/** Runs SQL on a new connection: one statement or, without values, several. Returns the rows of the last one. */
export async function query(url: string, sql: string, values?: unknown[]): Promise<Record<string, unknown>[]> {
  const client = await connect(url)
  try {
    const results = (await client.query(sql, values)) as pg.QueryResult | pg.QueryResult[]
    return [results].flat().at(-1)?.rows ?? []
  } finally {
    await client.end()
  }
}
