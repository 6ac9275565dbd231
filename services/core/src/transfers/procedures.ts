import { createTransferInput, DomainError, getTransferInput, transferOrder } from '../../contract/index.ts'
import { actorOf, router, workspaceProcedure } from '../trpc.ts'
import { createTransfer, toOrder } from './operations.ts'
import { findOrder } from './queries.ts'

export const transfers = router({
  create: workspaceProcedure('gateway', 'service')
    .input(createTransferInput)
    .output(transferOrder)
    .mutation(({ ctx, input }) => createTransfer(ctx.core, actorOf(ctx, input.caller.apiKey), input)),

  get: workspaceProcedure('gateway', 'service', 'admin')
    .input(getTransferInput)
    .output(transferOrder)
    .query(async ({ ctx, input }) => {
      const order = await findOrder(ctx.core.reads, input.workspaceId, input.bizId)
      if (!order) throw new DomainError('T001')
      return toOrder(order)
    }),
})
