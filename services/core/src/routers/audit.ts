import { auditPage, listAuditInput } from '@workspace-wallet/contract'
import { listAudit } from '../audit/queries.ts'
import { router } from '../trpc/init.ts'
import { operatorReadProcedure } from '../trpc/procedures.ts'

export const audit = router({
  list: operatorReadProcedure
    .input(listAuditInput)
    .output(auditPage)
    .query(({ ctx, input }) => listAudit(ctx.core, input)),
})
