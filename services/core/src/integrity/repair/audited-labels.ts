import type { KeyObject } from 'node:crypto'
import { AdminError, uuidFromId } from '@workspace-wallet/contract'
import { type FoundAction, readAction, selectAction } from '../../audit/chain.ts'
import type { Em } from '../../database/orm.ts'
import { isGenuine } from '../../database/row-signer.ts'
import type { AuditRow } from '../../database/tables/audit.ts'
import type { WalletRow } from '../../database/tables/wallet.ts'
import { statusAfter } from '../../wallets/audited-status.ts'
import type { Wallet } from '../../wallets/entities.ts'

/** The columns of a wallet that follow from the audit. */
export type Labels = Pick<WalletRow, 'name' | 'bizId' | 'status' | 'frozenBy'>

/**
 * The name, bizId and status in the audit of the wallets whose row was modified outside the service.
 *
 * @throws AdminError NOT_ALLOWED if no action created such a wallet, because signing its row would make it genuine
 */
export async function auditedLabels(em: Em, chainKey: KeyObject, wallets: Wallet[]): Promise<Map<string, Labels>> {
  const labelsById = new Map<string, Labels>()
  for (const wallet of wallets.filter(each => !isGenuine(each))) {
    // EXTERNAL wallets have no actions: nobody can name or freeze them.
    if (wallet.kind === 'EXTERNAL') {
      labelsById.set(wallet.id, { name: 'external', bizId: null, status: 'ACTIVE', frozenBy: null })
      continue
    }
    const labels = labelsOf(wallet.row)
    let isCreated = false
    for (const { action, after: json } of await actionsOn(em, chainKey, wallet)) {
      const after = JSON.parse(json!) as { frozenBy?: WalletRow['frozenBy'] }
      labels.status = statusAfter[action as keyof typeof statusAfter]
      labels.frozenBy = after.frozenBy ?? null
      if (action !== 'wallet.create') continue
      const { name, bizId, currency } = after as Pick<WalletRow, 'name' | 'bizId' | 'currency'>
      Object.assign(labels, { name, bizId })
      isCreated = currency === wallet.currency
    }
    if (!isCreated)
      throw new AdminError(
        'NOT_ALLOWED',
        `${wallet.id} was inserted outside the service: no action in the audit created it. Delete its row as the owner of the tables, then run ledger repair again.`,
      )
    labelsById.set(wallet.id, labels)
  }
  return labelsById
}

export function labelsOf({ name, bizId, status, frozenBy }: Labels): Labels {
  return { name, bizId, status, frozenBy }
}

/** The actions that set the name, bizId and status of a wallet, oldest first. @throws AdminError if one does not continue its chain */
async function actionsOn(em: Em, chainKey: KeyObject, { workspaceId, id }: Wallet): Promise<AuditRow[]> {
  const actions = Object.keys(statusAfter)
  const rows = await em.execute<FoundAction[]>(
    `select ${selectAction} from audit a
     where a.workspace_id = ? and a.target = ? and a.action in (${actions.map(() => '?').join(', ')})
     order by a.position`,
    [uuidFromId('workspace', workspaceId), id, ...actions],
  )
  return rows.map(found => {
    const { action, isGenuine } = readAction(chainKey, found)
    if (!isGenuine)
      throw new AdminError(
        'NOT_ALLOWED',
        `Action ${action.position} in the audit of ${workspaceId} was inserted outside the service: nothing was repaired, run ledger verify.`,
      )
    return action
  })
}
