import {
  type AuditAct,
  type AuditEntry,
  type AuditListing,
  type AuditPage,
  idFromUuid,
  uuidFromId,
} from '../../contract/index.ts'
import { Values } from '../db/lists/conditions.ts'
import { plainArray, type Queryable, run, statement, textArray } from '../db/statement.ts'
import type { Transfer } from '../ledger/posting.ts'

/**
 * A page of the acts, newest first. Only what is asked for is in the statement, so that each filter finds its index. The
 * statement has no name: there are too many to keep on every connection.
 */
export async function listAudit(db: Queryable, listing: AuditListing): Promise<AuditPage> {
  const { limit, workspaceId } = listing
  const workspace = workspaceId === undefined ? undefined : uuidFromId('workspace', workspaceId)
  if (workspace === null) return { entries: [], next: null }
  const values = new Values(limit + 1)
  const conditions = [
    condition(values, 'workspace_id =', workspace, 'uuid'),
    condition(values, 'actor =', listing.actor, 'text'),
    condition(values, 'act =', listing.act, 'text'),
    condition(values, 'target =', listing.target, 'text'),
    condition(values, 'at >=', listing.from?.toISOString(), 'timestamptz'),
    condition(values, 'at <', listing.to?.toISOString(), 'timestamptz'),
    condition(values, 'id <', listing.before, 'bigint'),
  ]
  const where = conditions.flat().join(' and ') || 'true'
  const listStatement = statement<AuditEntry>(
    '',
    `select id, at, actor, act, workspace_id as "workspaceId", target, before, after
     from audit where ${where} order by id desc limit $1`,
  )
  const rows = await run(db, listStatement, values.bound)
  const entries = rows
    .slice(0, limit)
    .map(row => ({ ...row, workspaceId: row.workspaceId && idFromUuid('workspace', row.workspaceId) }))
  return { entries, next: rows.length > limit ? entries.at(-1)!.id : null }
}

function condition(values: Values, comparison: string, value: unknown, type: string): string[] {
  return value === undefined ? [] : [`${comparison} ${values.bind(value, type)}`]
}

const insertFundingActsStatement = statement(
  'insert-funding-acts',
  `insert into audit (actor, act, workspace_id, target, after)
   select actor, act, workspace_id, target, jsonb_build_object(
     'transferId', transfer_id, 'bizId', biz_id, 'amount', amount, 'currency', currency)
   from unnest($1::text[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[])
     as _ (actor, act, workspace_id, target, transfer_id, biz_id, amount, currency)`,
)

/** Deposits and withdrawals are acts too. They are posted in batches, so they are written here and not by the ORM. */
export function insertFundingActs(db: Queryable, rows: Transfer[]): Promise<unknown> {
  const wallet = ({ type, sourceWalletId, targetWalletId }: Transfer) =>
    idFromUuid('wallet', type === 'DEPOSIT' ? targetWalletId : sourceWalletId)
  return run(db, insertFundingActsStatement, [
    textArray(rows.map(row => row.actor)),
    plainArray(rows.map(({ type }) => (type === 'DEPOSIT' ? 'wallet.deposit' : 'wallet.withdraw') satisfies AuditAct)),
    plainArray(rows.map(row => row.workspaceId)),
    plainArray(rows.map(wallet)),
    plainArray(rows.map(row => idFromUuid('transfer', row.transferId))),
    textArray(rows.map(row => row.bizId)),
    plainArray(rows.map(row => row.amount)),
    plainArray(rows.map(row => row.currency)),
  ])
}
