import type { KeyObject } from 'node:crypto'
import { AdminError, type Id, idFromUuid, type Uuid, uuidFromId } from '@workspace-wallet/contract'
import { changerOf } from '../../audit/actors.ts'
import { auditRowsPerFetch, type FoundAction, readAction, selectAction } from '../../audit/chain.ts'
import type { Em } from '../../database/orm.ts'
import { isGenuine } from '../../database/row-signer.ts'
import { bytes } from '../../database/tables/columns.ts'
import { journalColumns } from '../../database/tables/journal.ts'
import { type FoundRow, rowFrom, selectColumns, withMac } from '../../database/tables/table.ts'
import type { WalletRow } from '../../database/tables/wallet.ts'
import { type JournalEntry, journalMac } from '../../ledger/chain/journal.ts'
import type { Wallet } from '../../wallets/entities.ts'

/** The columns of a wallet that follow from the audit and the journal. */
export type Labels = Pick<WalletRow, 'name' | 'bizId' | 'status' | 'frozenBy'>

/**
 * What the wallets of one workspace had whose row was modified outside the service: the name and bizId of the action in the audit that
 * created them, and the status after their last entry in the journal.
 *
 * The verification has shown that the chain of the journal is sound. That of the audit may not be: whoever has the role of the service
 * can append to it. Its entries that are not genuine are skipped.
 *
 * @throws AdminError NOT_ALLOWED if no genuine action created such a wallet, because signing its row would make it genuine
 */
export async function auditedLabels(em: Em, chainKey: KeyObject, wallets: Wallet[]): Promise<Map<string, Labels>> {
  const labelsById = new Map<string, Labels>()
  const modified = wallets.filter(each => !isGenuine(each))
  const entryById = await lastEntries(
    em,
    chainKey,
    modified.filter(({ kind }) => kind !== 'EXTERNAL'),
  )
  for (const wallet of modified) {
    // EXTERNAL wallets have no actions: nobody can name or freeze them.
    if (wallet.kind === 'EXTERNAL') {
      labelsById.set(wallet.id, { name: 'external', bizId: null, status: 'ACTIVE', frozenBy: null })
      continue
    }
    const created = await findCreation(em, chainKey, wallet)
    const entry = entryById.get(wallet.id)
    if (created?.currency !== wallet.currency || !entry)
      throw new AdminError(
        'NOT_ALLOWED',
        `${wallet.id} was inserted outside the service: no action in the audit created it. Delete its row as the owner of the tables, then run ledger repair again.`,
      )
    const status = entry.status as WalletRow['status']
    const frozenBy = status === 'FROZEN' ? changerOf(entry.actor) : null
    labelsById.set(wallet.id, { name: created.name, bizId: created.bizId, status, frozenBy })
  }
  return labelsById
}

export function labelsOf({ name, bizId, status, frozenBy }: Labels): Labels {
  return { name, bizId, status, frozenBy }
}

/** What the genuine action says that created a wallet. */
type Creation = Pick<WalletRow, 'name' | 'bizId' | 'currency'>

/** No genuine one has more characters of JSON. */
const longestCreation = 16_384

/** A few entries at a time: forged ones may be any number. */
async function findCreation(em: Em, chainKey: KeyObject, { workspaceId, id }: Wallet): Promise<Creation | null> {
  for (let last = 0; ; ) {
    const rows = await em.execute<(FoundAction & { id: number })[]>(
      `select a.id::float8 as id, ${selectAction} from audit a
       where a.target = ? and a.action = 'wallet.create' and a.workspace_id = ? and a.id > ? and a.before is null
         and length(a.after::text) <= ${longestCreation}
       order by a.id limit ${auditRowsPerFetch}`,
      [id, uuidFromId('workspace', workspaceId), last],
    )
    for (const found of rows) {
      const { action, isGenuine } = readAction(chainKey, found)
      if (isGenuine) return JSON.parse(action.after!) as Creation
      last = found.id
    }
    if (rows.length < auditRowsPerFetch) return null
  }
}

const storedJournal = withMac(journalColumns)
type FoundEntry = FoundRow<typeof storedJournal> & { previous: unknown }

/**
 * The last journal entry of each of these wallets of one workspace, by ID.
 *
 * @throws AdminError NOT_ALLOWED if one was changed after the verification, which has checked them too
 */
async function lastEntries(
  em: Em,
  chainKey: KeyObject,
  wallets: readonly Wallet[],
): Promise<Map<Id<'wallet'>, JournalEntry>> {
  const [first] = wallets
  if (!first) return new Map()
  const rows = await em.execute<FoundEntry[]>(
    `select ${selectColumns(storedJournal, 'j')}, ${bytes.read(`(
       select p.mac from journal p where p.workspace_id = j.workspace_id and p.position < j.position
       order by p.position desc limit 1)`)} as previous
     from (
       select distinct on (wallet_id) * from journal
       where workspace_id = ? and hold_id is null and wallet_id in (${wallets.map(() => '?').join(', ')})
       order by wallet_id, position desc) j`,
    [uuidFromId('workspace', first.workspaceId), ...wallets.map(({ id }) => uuidFromId('wallet', id))],
  )
  return new Map(
    rows.map(found => {
      const { mac, ...entry } = rowFrom(storedJournal, found)
      if (!journalMac(chainKey, entry, bytes.parse(found.previous)).equals(mac))
        throw changedEntry(first.workspaceId, entry.walletId)
      return [idFromUuid('wallet', entry.walletId), entry]
    }),
  )
}

function changedEntry(workspaceId: string, walletId: Uuid<'wallet'>): AdminError {
  return new AdminError(
    'NOT_ALLOWED',
    `Journal entries of ${idFromUuid('wallet', walletId)} in ${workspaceId} were changed outside the service during the verification: nothing was repaired, run ledger verify.`,
  )
}
