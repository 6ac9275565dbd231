import { kekStatusInput, kekStatusStep, rewrapInput, rewrapStep } from '@workspace-wallet/contract'
import { rewrapSecrets } from '../keks/rewrap.ts'
import { findKekStatus } from '../keks/status.ts'
import { stepThrough } from '../places/merge.ts'
import { takeSlot } from '../search/bounded-search.ts'
import { router } from '../trpc/init.ts'
import { homeAdminProcedure, homeReadProcedure } from '../trpc/procedures.ts'
import { inTransaction } from '../trpc/transactions.ts'

/** The key-encryption keys of the secrets of API keys and webhooks. */
export const keks = router({
  status: homeReadProcedure
    .input(kekStatusInput)
    .output(kekStatusStep)
    .query(({ ctx, input }) =>
      stepThrough(ctx.places.all, input.after, (place, after) =>
        takeSlot(place, ctx, () => findKekStatus(place.orm.em.fork(), place.keyRing, after)),
      ),
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
