import { Decimal, idFromUuid, uuidFromId, type Wallet, type WalletStatus } from '../../contract/index.ts'
import { type Queryable, run, statement } from '../db/statement.ts'

export type WalletRow = {
  id: string
  name: string
  currency: string
  status: WalletStatus
  balance: string
  createdAt: Date
  updatedAt: Date
}

/** The columns of a wallet, in the shape of `WalletRow`. */
export const walletColumns = `
  w.id, w.name, w.currency, w.status, w.balance, w.created_at as "createdAt", w.updated_at as "updatedAt"`

export function toWallet({ id, balance, ...rest }: WalletRow): Wallet {
  return { walletId: idFromUuid('wallet', id), ...rest, balance: new Decimal(balance) }
}

const findWalletStatement = statement<WalletRow>(
  'find-wallet',
  `select ${walletColumns} from wallet w where w.workspace_id = $1 and w.id = $2 and w.kind = 'CUSTOMER'`,
)

/** One of the workspace's own wallets. Null when absent, malformed, of another workspace or hidden: no telling which. */
export async function findWallet(db: Queryable, workspaceId: string, walletId: string): Promise<Wallet | null> {
  const workspace = uuidFromId('workspace', workspaceId)
  const wallet = uuidFromId('wallet', walletId)
  if (!workspace || !wallet) return null
  const [row] = await run(db, findWalletStatement, [workspace, wallet])
  return row ? toWallet(row) : null
}

const findExternalWalletStatement = statement<{ id: string }>(
  'find-external-wallet',
  `select id from wallet where workspace_id = $1 and currency = $2 and kind = 'EXTERNAL'`,
)

/** The UUID of the hidden wallet that stands for the world outside. */
export async function findExternalWallet(db: Queryable, workspace: string, currency: string): Promise<string> {
  const [row] = await run(db, findExternalWalletStatement, [workspace, currency])
  if (!row) throw new Error(`workspace ${workspace} has wallets in ${currency} but no external one`)
  return row.id
}
