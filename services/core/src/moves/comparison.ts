import { AdminError, type Uuid } from '@workspace-wallet/contract'
import { Snapshot, type SnapshotSource } from '../database/snapshot.ts'

/** SQL: a digest of whole rows, which are few. */
const rowsOf = (table: string, order: string, row = 't::text', workspaceId = 'workspace_id') => `
  select '${table}', count(*)::text, coalesce(encode(sha256(convert_to(string_agg(${row}, E'\\n' order by ${order}), 'UTF8')), 'hex'), '')
  from {schema}.${table} t where ${workspaceId} = $1`

/** SQL: a digest of MACs, which cover the rows. */
const macsOf = (table: string) => `
  select '${table}', count(*)::text, coalesce(sum(hashtextextended(encode(mac, 'hex'), 0)), 0)::text
  from {schema}.${table} where workspace_id = $1`

/** SQL: the number of rows of a log, and where it ends. Whoever copies it compares its rows (see cli/admin/move/copy.ts). */
const endOf = (table: string) => `
  select '${table}', count(*)::text, coalesce(max(position), 0)::text from {schema}.${table} where workspace_id = $1`

const digestsSql = [
  rowsOf('workspace', 't.id', 't::text', 'id'),
  rowsOf('ledger', 't.workspace_id'),
  rowsOf('member', 't.user_id'),
  // Each place counts the changes of access for itself.
  rowsOf('api_key', 't.id', `(to_jsonb(t) - 'access_revision')::text`),
  rowsOf('webhook', 't.id'),
  rowsOf('spending_limit', 't.subject, t.currency'),
  rowsOf('audit_head', 't.workspace_id'),
  macsOf('wallet'),
  macsOf('hold'),
  endOf('transfer'),
  endOf('journal'),
  endOf('audit'),
].join(' union all ')

async function digestsIn(place: SnapshotSource, workspaceId: Uuid<'workspace'>): Promise<Map<string, string>> {
  const snapshot = await Snapshot.open(place, 'core compare')
  try {
    const rows = await snapshot.rows(digestsSql, [workspaceId])
    return new Map(rows.map(([table, ...digest]) => [table!, digest.join(' ')]))
  } finally {
    await snapshot.close()
  }
}

/** Compares the rows of a workspace that is stopped with their copy. @throws AdminError NOT_ALLOWED that names the tables that differ */
export async function requireEqual(
  source: SnapshotSource,
  target: SnapshotSource,
  workspaceId: Uuid<'workspace'>,
): Promise<void> {
  const [original, copy] = await Promise.all([digestsIn(source, workspaceId), digestsIn(target, workspaceId)])
  const different = [...original].filter(([table, digest]) => copy.get(table) !== digest).map(([table]) => table)
  if (different.length > 0)
    throw new AdminError('NOT_ALLOWED', `The copy is not complete: these tables differ: ${different.join(', ')}.`)
}

const leftoversSql = ['workspace', 'wallet', 'hold', 'transfer', 'journal', 'audit', 'member', 'api_key', 'webhook']
  .map(
    table =>
      `select '${table}' where exists (select from {schema}.${table} where ${table === 'workspace' ? 'id' : 'workspace_id'} = $1)`,
  )
  .join(' union all ')

/** The tables of a place that have rows of a workspace. */
export async function tablesWith(place: SnapshotSource, workspaceId: Uuid<'workspace'>): Promise<string[]> {
  const snapshot = await Snapshot.open(place, 'core compare')
  try {
    return (await snapshot.rows(leftoversSql, [workspaceId])).map(([table]) => table!)
  } finally {
    await snapshot.close()
  }
}
