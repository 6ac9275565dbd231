import { limitInput, limitPage, listLimitsInput, setLimitInput, spendingLimit } from '@workspace-wallet/contract'
import { clearLimit, listLimits, setLimit } from '../limits/operations.ts'
import { router } from '../trpc/init.ts'
import { adminProcedure, operatorReadProcedure } from '../trpc/procedures.ts'
import { inTransaction } from '../trpc/transactions.ts'

export const limits = router({
  set: adminProcedure
    .input(setLimitInput)
    .output(spendingLimit)
    .mutation(({ ctx, input: { reason, ...input } }) =>
      inTransaction({ ...ctx, reason }, (em, actor) => setLimit(em, { actor, chainKey: ctx.core.chainKey }, input)),
    ),

  clear: adminProcedure
    .input(limitInput)
    .mutation(({ ctx, input: { reason, ...input } }) =>
      inTransaction({ ...ctx, reason }, (em, actor) => clearLimit(em, { actor, chainKey: ctx.core.chainKey }, input)),
    ),

  list: operatorReadProcedure
    .input(listLimitsInput)
    .output(limitPage)
    .query(({ ctx, input }) => listLimits(ctx.core.orm.em.fork(), input)),
})
