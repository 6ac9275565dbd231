import {
  createWorkspaceInput,
  DomainError,
  deleteWorkspaceInput,
  listMembersInput,
  listWorkspacesInput,
  memberInput,
  memberPage,
  workspaceDetails,
  workspacePage,
} from '@workspace-wallet/contract'
import { z } from 'zod'
import type { Em } from '../database/orm.ts'
import { emptiestPlace } from '../places/emptiest.ts'
import { searchIn } from '../search/bounded-search.ts'
import { getWorkspace, listMembers, listWorkspaces, mergeWorkspaces } from '../search/workspaces.ts'
import { router } from '../trpc/init.ts'
import { adminProcedure, homeAdminProcedure, homeReadProcedure, operatorReadProcedure } from '../trpc/procedures.ts'
import { inAccessTransaction, inTransaction } from '../trpc/transactions.ts'
import { addMember, createWorkspace, deleteWorkspace, removeMember } from '../workspaces/operations.ts'

export const workspaces = router({
  list: homeReadProcedure
    .input(listWorkspacesInput)
    .output(workspacePage)
    .query(async ({ ctx, input }) => {
      const search = { blamed: 'namePrefix', read: (em: Em) => listWorkspaces(em, input) }
      return mergeWorkspaces(await Promise.all(ctx.places.all.map(place => searchIn(place, ctx, search))), input.limit)
    }),

  get: operatorReadProcedure
    .input(z.object({ workspaceId: z.string() }))
    .output(workspaceDetails)
    .query(({ ctx, input }) =>
      searchIn(ctx.core, ctx, { blamed: 'workspaceId', read: em => getWorkspace(em, input.workspaceId) }),
    ),

  create: homeAdminProcedure
    .input(createWorkspaceInput)
    .output(z.object({ workspaceId: z.string() }))
    .mutation(async ({ ctx, input }) => {
      const { all } = ctx.places
      const core = input.place === undefined ? await emptiestPlace(all) : all[input.place]
      if (!core) throw new DomainError('S012', { field: 'place', reason: 'NOT_A_POSITION' })
      return inTransaction({ ...ctx, core }, (em, actor) =>
        createWorkspace(em, { actor, chainKey: core.chainKey, place: core.number }, input.name),
      )
    }),

  delete: adminProcedure
    .input(deleteWorkspaceInput)
    .output(z.void())
    .mutation(({ ctx, input }) =>
      inAccessTransaction({ ...ctx, reason: input.reason }, (em, actor) =>
        deleteWorkspace(em, { actor, chainKey: ctx.core.chainKey }, input.workspaceId, input.force),
      ),
    ),
})

export const members = router({
  list: operatorReadProcedure
    .input(listMembersInput)
    .output(memberPage)
    .query(({ ctx, input }) => searchIn(ctx.core, ctx, { blamed: 'workspaceId', read: em => listMembers(em, input) })),

  add: adminProcedure
    .input(memberInput)
    .output(z.void())
    .mutation(({ ctx, input: { workspaceId, userId, reason } }) =>
      inAccessTransaction({ ...ctx, reason }, (em, actor) => addMember(em, actor, workspaceId, userId)),
    ),

  remove: adminProcedure
    .input(memberInput)
    .output(z.void())
    .mutation(({ ctx, input: { workspaceId, userId, reason } }) =>
      inAccessTransaction({ ...ctx, reason }, (em, actor) => removeMember(em, actor, workspaceId, userId)),
    ),
})
