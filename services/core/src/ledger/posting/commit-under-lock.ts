import type { KeyObject } from 'node:crypto'
import { DomainError } from '@workspace-wallet/contract'
import { withSpan } from '@workspace-wallet/runtime/tracing'
import type { Pool, PoolClient } from 'pg'
import { type Action, type AuditHead, appendActions } from '../../audit/chain.ts'
import { runOn } from '../../database/run.ts'
import { auditActionsOf } from '../decide/audited-commands.ts'
import { type ChainedDecisions, chainDecisions } from '../decide/chain-decisions.ts'
import { decide } from '../decide/decide.ts'
import { forgeryIn, modificationIn } from '../decide/modified-rows.ts'
import { type LedgerRequest, type RequestResult, refusal, resultsByWorkspace, unavailable } from '../decide/requests.ts'
import type { Decision } from '../decide/state.ts'
import { changeHolds } from '../store/change-holds.ts'
import { countSpending } from '../store/count-spending.ts'
import { loadLedgers } from '../store/load-ledgers.ts'
import type { Breach } from '../store/require-signed.ts'
import { committed, withConnection } from '../store/transaction.ts'
import { type Written, writeTransfers } from '../store/write-transfers.ts'
import { transactionSpan } from './transaction-span.ts'

/** The outcome of a batch. Results are in the order of its requests. */
export type Outcome = {
  results: RequestResult[]
  /** The rows that were written; null when there were none. */
  written: (Written & { rows: ChainedDecisions }) | null
  /** Workspaces whose rows were modified outside the service. Nothing was posted to them. */
  breaches: Breach[]
}

/** Posts a batch in one transaction of two round trips: lock and load, then write and commit. */
export function commitUnderLock(pool: Pool, chainKey: KeyObject, requests: LedgerRequest[]): Promise<Outcome> {
  return withSpan('commit under lock', transactionSpan(requests), () =>
    withConnection(pool, client => lockAndWrite(client, chainKey, requests)),
  )
}

async function lockAndWrite(client: PoolClient, chainKey: KeyObject, requests: LedgerRequest[]): Promise<Outcome> {
  const { ledgers, forged, audit, now } = await loadLedgers(client, chainKey, requests)
  const decisions: Decision[] = []
  const breaches: Breach[] = []
  const results = resultsByWorkspace(requests, (workspaceId, own) => {
    const ledger = ledgers.get(workspaceId)
    if (!ledger) return own.map(() => refusal(new DomainError('GA2032')))
    // In a ledger that is not open, only replays succeed, which show nothing but these records.
    const reason = forgeryIn(chainKey, ledger, forged) ?? modificationIn(chainKey, ledger)
    if (reason) {
      if (ledger.status !== 'HALTED') breaches.push({ workspaceId, reason })
      return own.map(unavailable)
    }
    const decision = decide(ledger, own, now, performance.now())
    if (decision.wallets.length > 0) decisions.push(decision)
    return decision.results
  })
  const actions = auditActionsOf(requests, results)
  return { results, written: await write(client, chainKey, decisions, { audit, actions }), breaches }
}

async function write(
  client: PoolClient,
  chainKey: KeyObject,
  decisions: Decision[],
  { audit, actions }: { audit: AuditHead[]; actions: Action[] },
): Promise<Outcome['written']> {
  const rows = chainDecisions(chainKey, decisions)
  const changing = rows.holds.wallets.length > 0 ? changeHolds(client, rows.holds) : null
  const counting = rows.limits.length > 0 ? countSpending(client, rows.limits) : null
  const posting = rows.postings.transfers.length > 0 ? writeTransfers(client, rows.postings, null) : null
  // In the same transaction as what they record.
  const appending = actions.length > 0 ? appendActions(runOn(client), chainKey, audit, actions) : null
  const writes = [changing, counting, posting, appending].filter(each => each !== null)
  await committed(writes, client.query('commit'))
  const written = (await posting) ?? (await changing)
  return written && { ...written, rows }
}
