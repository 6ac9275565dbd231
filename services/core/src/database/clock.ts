import type { Em } from './orm.ts'

/** The time of PostgreSQL, to the millisecond. Core never stores times of its own clock. */
export async function databaseTime(em: Em): Promise<Date> {
  const [row] = await em.execute<{ ms: string }[]>('select floor(extract(epoch from clock_timestamp()) * 1000) as ms')
  return new Date(Number(row!.ms))
}
