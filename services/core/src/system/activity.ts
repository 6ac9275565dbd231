import { type ActivityInput, Decimal, type HourlyTransfers, type SystemActivity } from '@workspace-wallet/contract'
import { databaseTime } from '../database/clock.ts'
import type { Em } from '../database/orm.ts'
import { plainArray } from '../database/statement.ts'
import { findHidden } from '../places/claims.ts'
import { type Searcher, type SearchParts, searchIn } from '../search/bounded-search.ts'

const hourMs = 3_600_000

/**
 * Counts the transfers of the last hours and sums up their amounts, by hour and currency. It reads the transfers since then by the BRIN
 * index of their times, and does not check their MACs.
 *
 * @throws DomainError S012 TOO_EXPENSIVE, with too many transfers to count them in time; S002 if too many searches wait
 */
export function readActivity(core: SearchParts, by: Searcher, { hours }: ActivityInput): Promise<SystemActivity> {
  const read = async (em: Em) => {
    const now = await databaseTime(em)
    const from = new Date((Math.floor(now.getTime() / hourMs) - hours + 1) * hourMs)
    return { from, now, totals: await countByHour(em, from, await findHidden(core.reads, core)) }
  }
  return searchIn(core, by, { blamed: 'hours', read })
}

/** The condition on the time stands alone: with one on the type, PostgreSQL would read an index of all transfers of that type. */
async function countByHour(em: Em, from: Date, hidden: readonly string[]): Promise<SystemActivity['totals']> {
  const rows = await em.execute<{ ms: string; currency: string; transfers: string; volume: string }[]>(
    `select (extract(epoch from hour) * 1000)::bigint::text as ms, currency, transfers::text, volume::text
     from (
       select date_trunc('hour', created_at, 'UTC') as hour, currency, count(*) filter (where type = 'TRANSFER') as transfers,
         sum(amount) filter (where type = 'TRANSFER') as volume
       from transfer where created_at >= ? and workspace_id <> all (?::uuid[]) group by 1, 2) totals
     where transfers > 0 order by hour, currency`,
    [from, plainArray(hidden)],
  )
  return rows.map(({ ms, currency, transfers, volume }) => ({
    hour: new Date(Number(ms)),
    currency,
    transfers: Number(transfers),
    volume: new Decimal(volume),
  }))
}

/** The sums of all places. The hours are those of the first. */
export function mergeActivities([first, ...others]: readonly SystemActivity[]): SystemActivity {
  const { from, now } = first!
  const sums = new Map<string, HourlyTransfers>()
  for (const { totals } of [first!, ...others])
    for (const { hour, currency, transfers, volume } of totals) {
      const name = `${hour.toISOString()} ${currency}`
      const sum = sums.get(name) ?? { hour, currency, transfers: 0, volume: new Decimal(0) }
      sums.set(name, { ...sum, transfers: sum.transfers + transfers, volume: sum.volume.plus(volume) })
    }
  return { from, now, totals: [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, sum]) => sum) }
}
