import type { KeyObject } from 'node:crypto'
import { idFromUuid } from '@workspace-wallet/contract'
import type { Log } from '@workspace-wallet/runtime'
import type { Pool, PoolClient } from 'pg'
import { coreActor } from '../../audit/chain/actors.ts'
import { appendActions, lockAudit } from '../../audit/chain/chain.ts'
import { runOn } from '../../database/run.ts'
import { ledgerMac } from '../../database/signed-rows.ts'
import { type Queryable, run, statement } from '../../database/statement.ts'
import { changeLedgerStatus } from '../rows/functions.ts'
import { lockLedgers } from './load.ts'

/** A workspace whose rows were modified outside the service, and which row shows it. */
export type Breach = { workspaceId: string; reason: string }

/**
 * Halts the ledger of a workspace until an operator reopens it, and logs the breach at level fatal. A ledger that is
 * halted already is not logged again; a breach that cannot be halted is logged each time. Never throws.
 */
export async function halt(
  { pool, chainKey, log }: { pool: Pool; chainKey: KeyObject; log: Log },
  breach: Breach,
): Promise<void> {
  try {
    if (!(await haltOnce(pool, chainKey, breach))) return
  } catch (error) {
    log.error({ err: error }, 'a workspace could not be halted: the next posting to it will try again')
  }
  const { workspaceId, reason } = breach
  const id = idFromUuid('workspace', workspaceId)
  log.fatal({ workspaceId: id, reason }, 'ledger breach: this workspace takes no more postings; run ledger verify')
}

/** Returns whether this call halted the ledger: false when it was not open. */
async function haltOnce(pool: Pool, chainKey: KeyObject, breach: Breach): Promise<boolean> {
  const client = await pool.connect()
  let failure: Error | undefined
  try {
    await client.query('begin')
    const wasOpen = await writeBreach(client, chainKey, breach)
    await client.query('commit')
    return wasOpen
  } catch (error) {
    // Closing the connection rolls the transaction back.
    failure = error as Error
    throw error
  } finally {
    client.release(failure)
  }
}

async function writeBreach(client: PoolClient, chainKey: KeyObject, breach: Breach): Promise<boolean> {
  const { workspaceId, reason } = breach
  const [ledger] = await lockLedgers(client, [workspaceId])
  if (ledger?.status !== 'OPEN') return false
  const heads = await lockAudit(runOn(client), [workspaceId])
  // A ledger row that was modified outside the service must not get a valid MAC by being halted.
  const isGenuine = ledgerMac(chainKey, ledger).equals(ledger.mac)
  const halted = { status: 'HALTED', haltReason: reason }
  await changeLedgerStatus(runOn(client), chainKey, ledger, halted, isGenuine)
  const action = {
    actor: coreActor,
    action: 'ledger.halt' as const,
    workspaceId,
    target: idFromUuid('workspace', workspaceId),
  }
  await appendActions(runOn(client), chainKey, heads, [{ ...action, before: null, after: JSON.stringify({ reason }) }])
  return true
}

const findHaltedStatement = statement<{ workspaceId: string; reason: string | null }>(
  'find-halted',
  `select workspace_id as "workspaceId", halt_reason as reason from ledger where status = 'HALTED' order by workspace_id`,
)

/** Halted ledgers, with the UUIDs of their workspaces. They accept no postings until an operator reopens them. */
export function findHaltedLedgers(db: Queryable): Promise<{ workspaceId: string; reason: string | null }[]> {
  return run(db, findHaltedStatement, [])
}
