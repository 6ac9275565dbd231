import { readFile } from 'node:fs/promises'
import { uuidFromId } from '@workspace-wallet/contract'
import { query } from '../../../../cli/processes/database.ts'
import { sayWithin } from '../../../../cli/processes/say.ts'
import { type Database, makeSigner, type Service, type Signer } from '../../testbed/testbed.ts'

const say = sayWithin('lists')
/** The largest number of wallets in a workspace. */
const mostWallets = 100_000

/** A workspace whose first wallet has `rows` flows. */
export type Filled = { rows: number; signer: Signer; wallet: string; orders: number; events: number }

/** Creates a workspace with this number of flows in its first wallet, a tenth more orders, and wallets. */
export async function fill({ admin }: Service, database: Database, rows: number): Promise<Filled> {
  say(`filling a workspace with ${rows} orders`)
  const signer = await makeSigner(admin, 0)
  const { workspaceId } = signer
  const wallets: string[] = []
  for (const currency of ['USD', 'USD', 'EUR', 'EUR'])
    wallets.push((await admin.wallets.create.mutate({ workspaceId, currency, name: 'Filled' })).walletId)
  const [dollarA, dollarB, euroA, euroB] = wallets.map(id => uuidFromId('wallet', id))
  const orders = rows + Math.floor(rows / 10)
  const values: Record<string, string | number | null | undefined> = {
    workspace: uuidFromId('workspace', workspaceId),
    rows,
    orders,
    wallets: Math.min(rows, mostWallets),
    dollarA,
    dollarB,
    euroA,
    euroB,
  }
  const sql = await readFile(new URL('./fill.sql', import.meta.url), 'utf8')
  await query(
    database.ownerUrl,
    sql.replaceAll(/@(\w+)@/g, (_, name) => String(values[name])),
  )
  // Before the orders, each of these wallets was created.
  return { rows, orders, events: wallets.length + orders, signer: { ...signer, wallets }, wallet: wallets[0]! }
}
