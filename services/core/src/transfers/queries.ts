import { uuidFromId } from '../../contract/index.ts'
import { type Queryable, run, statement } from '../db/statement.ts'
import type { Transfer } from '../ledger/posting.ts'
import { transferColumns } from '../ledger/queries.ts'

const orderByIdStatement = statement<Transfer>(
  'order-by-id',
  `select ${transferColumns} from transfer t where t.workspace_id = $1 and t.id = $2 and t.number is not null`,
)
const orderByBizIdStatement = statement<Transfer>(
  'order-by-biz-id',
  `select ${transferColumns} from transfer t where t.workspace_id = $1 and t.biz_id = $2 and t.number is not null`,
)

/**
 * A transfer order by its transferId or its bizId, which never have the same form. Deposits and withdrawals are no
 * orders. Null when absent or of another workspace: no telling which.
 */
export async function findOrder(db: Queryable, workspaceId: string, name: string): Promise<Transfer | null> {
  const workspace = uuidFromId('workspace', workspaceId)
  if (!workspace || name.includes('\u0000')) return null
  const id = uuidFromId('transfer', name)
  const [row] = id
    ? await run(db, orderByIdStatement, [workspace, id])
    : await run(db, orderByBizIdStatement, [workspace, name])
  return row ?? null
}
