import { randomInt } from 'node:crypto'
import { run, statement } from '../database/statement.ts'
import { inTime } from './in-time.ts'
import type { Place } from './places.ts'

const sizeStatement = statement<{ bytes: number }>(
  'size-of-place',
  `select pg_total_relation_size('transfer')::float8 + pg_total_relation_size('wallet') as bytes`,
)

/** The place with the smallest tables, for a new workspace. A place that does not answer is none. @throws its error, if none answers */
export async function emptiestPlace<Each extends Place>(places: readonly [Each, ...Each[]]): Promise<Each> {
  if (places.length === 1) return places[0]
  const sizes = await Promise.allSettled(
    places.map(async place => {
      const [size] = await inTime(place, run(place.reads, sizeStatement, []))
      return { place, bytes: size!.bytes }
    }),
  )
  const known = sizes.flatMap(size => (size.status === 'fulfilled' ? size.value : []))
  if (known.length === 0) throw (sizes[0] as PromiseRejectedResult).reason
  const least = Math.min(...known.map(({ bytes }) => bytes))
  const emptiest = known.filter(({ bytes }) => bytes === least)
  return emptiest[randomInt(emptiest.length)]!.place
}
