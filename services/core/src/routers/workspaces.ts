import { createWorkspaceInput, deleteWorkspaceInput, memberInput } from '@workspace-wallet/contract'
import { z } from 'zod'
import { router } from '../trpc/init.ts'
import { adminProcedure } from '../trpc/procedures.ts'
import { inAccessTransaction, inTransaction } from '../trpc/transactions.ts'
import { addMember, createWorkspace, deleteWorkspace, removeMember } from '../workspaces/operations.ts'

export const workspaces = router({
  create: adminProcedure
    .input(createWorkspaceInput)
    .output(z.object({ workspaceId: z.string() }))
    .mutation(({ ctx, input }) =>
      inTransaction(ctx, (em, actor) => createWorkspace(em, { actor, chainKey: ctx.core.chainKey }, input.name)),
    ),

  delete: adminProcedure
    .input(deleteWorkspaceInput)
    .output(z.void())
    .mutation(({ ctx, input }) =>
      inAccessTransaction(ctx, (em, actor) =>
        deleteWorkspace(em, { actor, chainKey: ctx.core.chainKey }, input.workspaceId, input.force),
      ),
    ),
})

export const members = router({
  add: adminProcedure
    .input(memberInput)
    .output(z.void())
    .mutation(({ ctx, input }) =>
      inAccessTransaction(ctx, (em, actor) => addMember(em, actor, input.workspaceId, input.userId)),
    ),

  remove: adminProcedure
    .input(memberInput)
    .output(z.void())
    .mutation(({ ctx, input }) =>
      inAccessTransaction(ctx, (em, actor) => removeMember(em, actor, input.workspaceId, input.userId)),
    ),
})
