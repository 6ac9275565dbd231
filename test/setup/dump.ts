import { connect } from './database.ts'

/** Everything in a database: every row of every table as text. */
export async function dumpOf(ownerUrl: string): Promise<string> {
  const client = await connect(ownerUrl)
  try {
    const { rows: tables } = await client.query<{ name: string }>(
      `select format('%I.%I', schemaname, tablename) as name from pg_tables
       where schemaname not in ('pg_catalog', 'information_schema') order by 1`,
    )
    const parts: string[] = []
    for (const { name } of tables) {
      const { rows } = await client.query<{ line: string }>(`select t::text as line from ${name} t`)
      parts.push(name, ...rows.map(({ line }) => line))
    }
    return parts.join('\n')
  } finally {
    await client.end()
  }
}

/** The forms in which a text may contain bytes: raw, in hexadecimal and in Base64, whatever surrounds them. */
export function formsOf(secret: Buffer): string[] {
  const texts = [secret.toString('latin1'), secret.toString('hex'), secret.toString('hex').toUpperCase()]
  // In the Base64 of a longer text, the bytes begin at one of three offsets, and share their first and last letters.
  for (const shift of [0, 1, 2]) {
    const encoded = Buffer.concat([Buffer.alloc(shift), secret])
      .toString('base64')
      .replaceAll('=', '')
    const inner = encoded.slice(shift === 0 ? 0 : shift + 1, -1)
    texts.push(inner, inner.replaceAll('+', '-').replaceAll('/', '_'))
  }
  return texts
}
