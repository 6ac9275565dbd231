/** Signs rows of a filled workspace, so that core returns them: it checks their MACs. */
import { createSecretKey, type KeyObject } from 'node:crypto'
import { maxEvents, type Uuid, uuidFromId } from '@workspace-wallet/contract'
import type pg from 'pg'
import { connect } from '../../../../cli/processes/database.ts'
import { run } from '../../../../services/core/src/database/statement.ts'
import { ledgerMac } from '../../../../services/core/src/database/tables/ledger.ts'
import { walletMac } from '../../../../services/core/src/database/tables/wallet.ts'
import { readStoredPage } from '../../../../services/core/src/events/queries.ts'
import { entryMac, transferDigest } from '../../../../services/core/src/ledger/chain/chain.ts'
import { loadWallets, lockLedgers } from '../../../../services/core/src/ledger/store/queries.ts'
import type { Database, Testbed } from '../../testbed/testbed.ts'
import type { Filled } from './fill.ts'

/** Signs the ledger, the wallets of the signer, and the largest page of transfers after each of these positions. */
export async function signEvents(
  { ledgerChainKey }: Testbed,
  { ownerUrl }: Database,
  { signer }: Filled,
  positions: readonly number[],
): Promise<void> {
  const chainKey = createSecretKey(Buffer.from(ledgerChainKey, 'base64'))
  const workspaceId = uuidFromId('workspace', signer.workspaceId)!
  const client = await connect(ownerUrl)
  try {
    await client.query('set session_replication_role = replica')
    const [ledger] = await lockLedgers(client, [workspaceId])
    const mac = ledgerMac(chainKey, ledger!)
    await client.query('update ledger set mac = $2 where workspace_id = $1', [workspaceId, mac])
    const keys = signer.wallets.map(id => ({ workspaceId, id: uuidFromId('wallet', id)! }))
    for (const { wallet } of await loadWallets(client, keys))
      await client.query('update wallet set mac = $3 where workspace_id = $1 and id = $2', [
        ...[workspaceId, wallet.id],
        walletMac(chainKey, wallet),
      ])
    for (const after of positions) await signTransfers(client, chainKey, workspaceId, after)
  } finally {
    await client.end()
  }
}

/** The MACs before those of the page stay as they are: each MAC covers the one before, whether or not that is valid. */
async function signTransfers(
  client: pg.Client,
  chainKey: KeyObject,
  workspaceId: Uuid<'workspace'>,
  after: number,
): Promise<void> {
  const page = await readStoredPage({ read: ({ statement, values }) => run(client, statement, values) }, workspaceId, {
    after,
    size: maxEvents,
    types: [],
  })
  const heads = new Map<string, Buffer>(page!.info.previous.map(([wallet, , mac]) => [wallet, Buffer.from(mac, 'hex')]))
  for (const event of page!.events) {
    if (!('transfer' in event)) continue
    const { transfer, source, target } = event
    const digest = transferDigest(transfer)
    const chain = (walletId: string, direction: 'IN' | 'OUT', side: typeof source) => {
      const mac = entryMac(chainKey, { direction, ...side }, digest, heads.get(walletId) ?? Buffer.alloc(0))
      heads.set(walletId, mac)
      return mac
    }
    const macs = [chain(transfer.sourceWalletId, 'OUT', source), chain(transfer.targetWalletId, 'IN', target)]
    await client.query(
      'update transfer set source_mac = $3, target_mac = $4 where workspace_id = $1 and position = $2',
      [workspaceId, transfer.position, ...macs],
    )
  }
}
