import { auditPage, listAuditInput } from '../../contract/index.ts'
import { procedureFor, router } from '../trpc.ts'
import { listAudit } from './queries.ts'

export const audit = router({
  list: procedureFor('admin')
    .input(listAuditInput)
    .output(auditPage)
    .query(({ ctx, input }) => listAudit(ctx.core.lists, input)),
})
