import { uuidFromId } from '@workspace-wallet/contract'
import type { Em } from '../../database/orm.ts'
import { runIn } from '../../database/run.ts'
import { statement } from '../../database/statement.ts'
import { Ledger } from './entities.ts'

const lockLedgerStatement = statement('lock-ledger', 'select from lock_ledgers(array[$1::uuid])')

/** The ledger of a workspace, locked until the transaction ends: postings and administration wait for each other here. */
export async function lockLedger(em: Em, workspaceId: string): Promise<Ledger | null> {
  await runIn(em)(lockLedgerStatement, [uuidFromId('workspace', workspaceId)])
  return em.findOne(Ledger, { workspaceId })
}
