import { kekStatus, rewrapInput, rewrapStep } from '@workspace-wallet/contract'
import { rewrapSecrets } from '../keks/rewrap.ts'
import { findKekStatus, mergeKekStatuses } from '../keks/status.ts'
import { stepThrough } from '../places/merge.ts'
import { router } from '../trpc/init.ts'
import { homeAdminProcedure, homeReadProcedure } from '../trpc/procedures.ts'
import { inTransaction } from '../trpc/transactions.ts'

/** The key-encryption keys of the secrets of API keys and webhooks. */
export const keks = router({
  status: homeReadProcedure
    .output(kekStatus)
    .query(async ({ ctx: { places } }) =>
      mergeKekStatuses(await Promise.all(places.all.map(({ orm, keyRing }) => findKekStatus(orm.em, keyRing)))),
    ),

  rewrap: homeAdminProcedure
    .input(rewrapInput)
    .output(rewrapStep)
    .mutation(({ ctx, input }) =>
      stepThrough(ctx.places.all, input.after, (core, after) =>
        inTransaction({ ...ctx, core }, (em, actor) => rewrapSecrets(em, core.keyRing, actor, { ...input, after })),
      ),
    ),
})
