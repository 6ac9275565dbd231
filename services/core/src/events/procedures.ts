import { eventPage, readEventsInput } from '@workspace-wallet/contract'
import { router } from '../trpc/init.ts'
import { workspaceReadProcedure } from '../trpc/procedures.ts'
import { readEvents } from './queries.ts'

export const events = router({
  read: workspaceReadProcedure('event:read')
    .input(readEventsInput)
    .output(eventPage)
    .query(({ ctx, input }) => readEvents(ctx.core.lists, input.workspaceId, input)),
})
