import type { Em } from './orm.ts'

/** The time of PostgreSQL in milliseconds. Core stores no times of its own clock. */
export async function databaseTime(em: Em): Promise<Date> {
  const [row] = await em.execute<{ ms: string }[]>('select floor(extract(epoch from clock_timestamp()) * 1000) as ms')
  return new Date(Number(row!.ms))
}
