import {
  activityInput,
  DomainError,
  type InstanceKind,
  instanceReport,
  leaveInput,
  listRefusalsInput,
  recordBackupInput,
  refusalPage,
  reportRefusalsInput,
  systemActivity,
  systemStatus,
} from '@workspace-wallet/contract'
import { z } from 'zod'
import { mergeNumbered } from '../places/merge.ts'
import type { Places } from '../places/places.ts'
import { listRefusals } from '../refusals/list.ts'
import { searchIn } from '../search/bounded-search.ts'
import { mergeActivities, readActivity } from '../system/activity.ts'
import { recordBackup } from '../system/backups.ts'
import { mergeStatuses, readStatus } from '../system/status.ts'
import type { Core } from '../trpc/context.ts'
import { router } from '../trpc/init.ts'
import { gatewayProcedure, homeAdminProcedure, homeReadProcedure, instanceProcedure } from '../trpc/procedures.ts'
import type { CallerToken } from '../trpc/service-token.ts'
import { inTransaction } from '../trpc/transactions.ts'

export const system = router({
  status: homeReadProcedure
    .output(systemStatus)
    .query(async ({ ctx }) => mergeStatuses(await Promise.all(ctx.places.all.map(place => readStatus(place, ctx))))),

  activity: homeReadProcedure
    .input(activityInput)
    .output(systemActivity)
    .query(async ({ ctx, input }) =>
      mergeActivities(await Promise.all(ctx.places.all.map(place => readActivity(place, ctx, input)))),
    ),

  recordBackup: homeAdminProcedure
    .input(recordBackupInput)
    .output(z.void())
    .mutation(async ({ ctx, input }) => {
      for (const core of placesOfBackup(ctx.places, input.places))
        await inTransaction({ ...ctx, core }, async (em, actor) => recordBackup(em, actor, input))
    }),
})

/** The places that a backup contains. @throws DomainError S012 if it does not say which of several, or names one that does not exist */
function placesOfBackup({ all, home }: Places<Core>, numbers: readonly number[] | undefined): Core[] {
  if (!numbers && all.length === 1) return [home]
  if (!numbers) throw new DomainError('S012', { field: 'places', reason: 'REQUIRED' })
  const places = [...new Set(numbers)].map(number => all[number])
  if (!places.every(place => place !== undefined))
    throw new DomainError('S012', { field: 'places', reason: 'NOT_A_POSITION' })
  return places
}

/** Calls of the public API that gateways have refused. */
export const refusals = router({
  report: gatewayProcedure
    .meta({ logLevel: 'debug' })
    .input(reportRefusalsInput)
    .output(z.void())
    // The name of the token: a gateway cannot report as another one.
    .mutation(({ ctx, input }) => ctx.core.refusals.store(ctx.token.name, input.refusals, input.dropped)),

  list: homeReadProcedure
    .input(listRefusalsInput)
    .output(refusalPage)
    .query(async ({ ctx, input }) => {
      const { items, next } = await mergeNumbered([ctx.places.home], input, (place, before) =>
        searchIn(place, ctx, { blamed: 'code', read: em => listRefusals(em, before, input) }),
      )
      return { refusals: items, next }
    }),
})

/** Gateways and couriers, about themselves. Kind and name are those of the token: none can report as another. */
export const instances = router({
  report: instanceProcedure
    .meta({ logLevel: 'debug' })
    .input(instanceReport)
    .output(z.void())
    .mutation(({ ctx: { core, token }, input }) => core.instances.report(kindOf(token), token.name, input)),

  leave: instanceProcedure
    .meta({ logLevel: 'debug' })
    .input(leaveInput)
    .output(z.void())
    .mutation(({ ctx: { core, token }, input }) => core.instances.leave(kindOf(token), token.name, input.instanceId)),
})

const kindOf = ({ role }: CallerToken): InstanceKind => (role === 'gateway' ? 'gateway' : 'courier')
