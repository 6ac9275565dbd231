import { z } from 'zod'
import { createWorkspaceInput, deleteWorkspaceInput, memberInput } from '../../contract/index.ts'
import { inAccessTransaction, inTransaction, procedureFor, router } from '../trpc.ts'
import { addMember, createWorkspace, deleteWorkspace, removeMember } from './operations.ts'

export const workspaces = router({
  create: procedureFor('admin')
    .input(createWorkspaceInput)
    .output(z.object({ workspaceId: z.string() }))
    .mutation(({ ctx, input }) => inTransaction(ctx, (em, actor) => createWorkspace(em, actor, input.name))),

  delete: procedureFor('admin')
    .input(deleteWorkspaceInput)
    .output(z.void())
    .mutation(({ ctx, input }) =>
      inAccessTransaction(ctx, (em, actor) => deleteWorkspace(em, actor, input.workspaceId, input.force)),
    ),
})

export const members = router({
  add: procedureFor('admin')
    .input(memberInput)
    .output(z.void())
    .mutation(({ ctx, input }) =>
      inAccessTransaction(ctx, (em, actor) => addMember(em, actor, input.workspaceId, input.userId)),
    ),

  remove: procedureFor('admin')
    .input(memberInput)
    .output(z.void())
    .mutation(({ ctx, input }) =>
      inAccessTransaction(ctx, (em, actor) => removeMember(em, actor, input.workspaceId, input.userId)),
    ),
})
