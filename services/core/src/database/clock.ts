import type { Em } from './orm.ts'

/** PostgreSQL's clock: the only one whose times are stored. */
export async function databaseTime(em: Em): Promise<Date> {
  const [row] = await em.execute<{ ms: string }[]>('select floor(extract(epoch from clock_timestamp()) * 1000) as ms')
  return new Date(Number(row!.ms))
}
