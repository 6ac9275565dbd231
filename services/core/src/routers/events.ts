import { eventPage, readEventsInput } from '@workspace-wallet/contract'
import { router } from '../trpc/init.ts'
import { workspaceReadProcedure } from '../trpc/procedures.ts'

export const events = router({
  read: workspaceReadProcedure('event:read')
    .meta({ hasOwnLimit: true })
    .input(readEventsInput)
    .output(eventPage)
    .query(async ({ ctx, input }) => {
      const { events, ...page } = await ctx.core.events.read(input.workspaceId, input)
      return { content: `[${events.map(({ text }) => text).join(',')}]`, ...page }
    }),
})
