import { kekStatus, rewrapInput, rewrapStep } from '@workspace-wallet/contract'
import { rewrapSecrets } from '../keks/rewrap.ts'
import { findKekStatus } from '../keks/status.ts'
import { router } from '../trpc/init.ts'
import { adminProcedure, operatorReadProcedure } from '../trpc/procedures.ts'
import { inTransaction } from '../trpc/transactions.ts'

/** The key-encryption keys of the secrets of API keys and webhooks. */
export const keks = router({
  status: operatorReadProcedure.output(kekStatus).query(({ ctx }) => findKekStatus(ctx.core.orm.em, ctx.core.keyRing)),

  rewrap: adminProcedure
    .input(rewrapInput)
    .output(rewrapStep)
    .mutation(({ ctx, input }) => inTransaction(ctx, (em, actor) => rewrapSecrets(em, ctx.core.keyRing, actor, input))),
})
