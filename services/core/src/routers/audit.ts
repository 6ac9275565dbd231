import { auditPage, listAuditInput } from '@workspace-wallet/contract'
import { listAudit } from '../audit/queries.ts'
import { mergeNumbered } from '../places/merge.ts'
import { placesOf } from '../trpc/context.ts'
import { router } from '../trpc/init.ts'
import { operatorReadProcedure } from '../trpc/procedures.ts'

export const audit = router({
  list: operatorReadProcedure
    .input(listAuditInput)
    .output(auditPage)
    .query(async ({ ctx, input }) => {
      const { items, next } = await mergeNumbered(placesOf(ctx, input.workspaceId), input, (place, before) =>
        listAudit(place, before, input),
      )
      return { entries: items, next }
    }),
})
