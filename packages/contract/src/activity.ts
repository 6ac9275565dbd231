import { z } from 'zod'
import { decimal } from './money.ts'

/** How far back `system.activity` counts, in hours. */
export const maxActivityHours = 24

/** The present hour (UTC) and the ones before it, so many in all. */
export const activityInput = z.object({ hours: z.int().min(1).max(maxActivityHours).default(maxActivityHours) })
export type ActivityInput = z.infer<typeof activityInput>

/** The transfers of one hour in one currency. */
export const hourlyTransfers = z.object({
  /** When the hour begins. */
  hour: z.date(),
  currency: z.string(),
  transfers: z.int(),
  volume: decimal,
})
export type HourlyTransfers = z.infer<typeof hourlyTransfers>

/**
 * All transfers between wallets since `from`, also captures of holds, reversals and items of batches, but neither deposits nor
 * withdrawals. `totals`: in the order of hours and currencies; an hour without transfers of a currency has no entry.
 */
export const systemActivity = z.object({
  from: z.date(),
  /** The time of PostgreSQL: the last hour is not over. */
  now: z.date(),
  totals: z.array(hourlyTransfers),
})
export type SystemActivity = z.infer<typeof systemActivity>
