import {
  createHoldInput,
  DomainError,
  getHoldInput,
  hold,
  holdPage,
  listHoldsInput,
  releaseHoldInput,
} from '@workspace-wallet/contract'
import { createHold, releaseHold } from '../holds/operations.ts'
import { findHold, listHolds } from '../holds/queries.ts'
import { haltIfModified } from '../ledger/store/halt.ts'
import { router } from '../trpc/init.ts'
import { workspaceCommandProcedure, workspaceProcedure, workspaceReadProcedure } from '../trpc/procedures.ts'

export const holds = router({
  create: workspaceProcedure('hold:create')
    .meta({ logLevel: 'debug', hasOwnLimit: true })
    .input(createHoldInput)
    .output(hold)
    .mutation(({ ctx, input }) => createHold(ctx.core, ctx.actor, input)),

  release: workspaceCommandProcedure('hold:create')
    .meta({ logLevel: 'debug', hasOwnLimit: true })
    .input(releaseHoldInput)
    .output(hold)
    .mutation(({ ctx, input }) => releaseHold(ctx.core, ctx.actor, input)),

  get: workspaceReadProcedure('hold:read')
    .meta({ hasOwnLimit: true })
    .input(getHoldInput)
    .output(hold)
    .query(async ({ ctx, input }) => {
      const found = await haltIfModified(ctx.core, () => findHold(ctx.core, input.workspaceId, input.bizId))
      if (!found) throw new DomainError('H001')
      return found
    }),

  list: workspaceReadProcedure('hold:read')
    .meta({ hasOwnLimit: true })
    .input(listHoldsInput)
    .output(holdPage)
    .query(async ({ ctx, input }) => {
      const { workspaceId, walletId } = input
      const page = await listHolds(ctx.core, workspaceId, walletId, input)
      if (!page)
        throw walletId === undefined ? new DomainError('GA2032') : new DomainError('W001', { field: 'walletId' })
      return page
    }),
})
