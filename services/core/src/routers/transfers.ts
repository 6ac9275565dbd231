import {
  createBatchInput,
  createTransferInput,
  DomainError,
  foundTransfers,
  getTransferInput,
  listTransfersInput,
  reverseTransferInput,
  scopeOf,
  searchTransfersInput,
  tracedTransfer,
  transferBatch,
  transferNameInput,
  transferOrder,
  transferPage,
} from '@workspace-wallet/contract'
import type { Em } from '../database/orm.ts'
import { haltIfModified } from '../ledger/store/halt.ts'
import { searchIn } from '../search/bounded-search.ts'
import { traceTransfer } from '../search/trace.ts'
import { placeOfTransfer, placesOfTransfers } from '../search/transfer-places.ts'
import { mergeTransfers, searchTransfers } from '../search/transfers.ts'
import { createBatch, createTransfer, reverseTransfer, toOrder } from '../transfers/operations.ts'
import { findOrder, listOrders, listOrdersOfWallet } from '../transfers/queries.ts'
import { router } from '../trpc/init.ts'
import {
  operatorReadProcedure,
  workspaceCommandProcedure,
  workspaceProcedure,
  workspaceReadProcedure,
} from '../trpc/procedures.ts'

export const transfers = router({
  create: workspaceProcedure('transfer:create')
    .meta({ logLevel: 'debug', hasOwnLimit: true })
    .input(createTransferInput)
    .output(transferOrder)
    .mutation(async ({ ctx, input }) => {
      await ctx.requireScope(scopeOf(input.order))
      return createTransfer(ctx.core, ctx.actor, input)
    }),

  batch: workspaceProcedure('transfer:create')
    .meta({ logLevel: 'debug', hasOwnLimit: true })
    .input(createBatchInput)
    .output(transferBatch)
    .mutation(async ({ ctx, input }) => {
      for (const [index, item] of input.batch.transfers.entries()) await ctx.requireScope(scopeOf(item), index)
      return createBatch(ctx.core, ctx.actor, input)
    }),

  reverse: workspaceCommandProcedure('transfer:reverse')
    .meta({ logLevel: 'debug', hasOwnLimit: true })
    .input(reverseTransferInput)
    .output(transferOrder)
    .mutation(({ ctx, input }) => reverseTransfer(ctx.core, ctx.actor, input)),

  get: workspaceReadProcedure('transfer:read')
    .meta({ hasOwnLimit: true })
    .input(getTransferInput)
    .output(transferOrder)
    .query(async ({ ctx, input }) => {
      const found = await haltIfModified(ctx.core, () => findOrder(ctx.core, input.workspaceId, input.bizId))
      if (!found) throw new DomainError('T001')
      return toOrder({ ...found.transfer, reversedAmount: found.reversedAmount })
    }),

  list: workspaceReadProcedure('transfer:read')
    .meta({ hasOwnLimit: true })
    .input(listTransfersInput)
    .output(transferPage)
    .query(async ({ ctx, input }) => {
      const { workspaceId, walletId } = input
      if (walletId === undefined) {
        const page = await listOrders(ctx.core.lists, workspaceId, input)
        if (!page) throw new DomainError('GA2032')
        return page
      }
      const page = await listOrdersOfWallet(ctx.core.lists, workspaceId, walletId, input)
      if (!page) throw new DomainError('W001', { field: 'walletId' })
      return page
    }),

  search: operatorReadProcedure
    .meta({ hasOwnLimit: true })
    .input(searchTransfersInput)
    .output(foundTransfers)
    .query(async ({ ctx, input }) => {
      const search = { blamed: 'from', read: (em: Em) => searchTransfers(em, input) }
      const pages = (await placesOfTransfers(ctx, input)).map(place => searchIn(place, ctx, search))
      return mergeTransfers(await Promise.all(pages), input.limit)
    }),

  trace: operatorReadProcedure
    .meta({ hasOwnLimit: true })
    .input(transferNameInput)
    .output(tracedTransfer)
    .query(async ({ ctx, input }) => traceTransfer(await placeOfTransfer(ctx, input), ctx, input)),
})
