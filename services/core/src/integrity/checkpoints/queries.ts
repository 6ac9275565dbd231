import {
  type CheckpointAudit,
  type CheckpointLog,
  type CheckpointRow,
  type IdKind,
  idFromUuid,
  type Uuid,
  uuidFromId,
} from '@workspace-wallet/contract'
import type { Snapshot } from '../../database/snapshot.ts'
import { type Queryable, run, statement } from '../../database/statement.ts'

/** The last flow of a wallet, and the revision of its row. `head` in hex. */
export type CheckpointWallet = {
  workspaceId: Uuid<'workspace'>
  walletId: Uuid<'wallet'>
  sequence: number
  head: string
  revision: number
}

/** The time of PostgreSQL, ISO 8601. */
export async function snapshotTime(snapshot: Snapshot): Promise<string> {
  const [row] = await snapshot.rows(`select to_char(clock_timestamp(), 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`)
  return row![0]!
}

/** All wallets in the order of their keys. */
export async function* headsInOrder(
  snapshot: Snapshot,
  workspaceId: Uuid<'workspace'> | null,
): AsyncGenerator<CheckpointWallet[]> {
  const sql = `
    select workspace_id, id, sequence, encode(head, 'hex'), revision
    from {here}.wallet where $1::uuid is null or workspace_id = $1
    order by workspace_id, id`
  for await (const rows of snapshot.batches(sql, [workspaceId]))
    yield rows.map(([workspaceId, walletId, sequence, head, revision]) => ({
      workspaceId: workspaceId as Uuid<'workspace'>,
      walletId: walletId as Uuid<'wallet'>,
      sequence: Number(sequence),
      head: head!,
      revision: Number(revision),
    }))
}

/** The rows that a public ID names, besides their workspace. */
const idKinds: Partial<Record<string, IdKind>> = { hold: 'hold', key: 'apiKey', webhook: 'webhook' }

/** The revisions of all signed rows except wallets. */
export async function* signedRows(
  snapshot: Snapshot,
  workspaceId: Uuid<'workspace'> | null,
): AsyncGenerator<CheckpointRow[]> {
  const sql = `
    select kind, workspace_id, id, revision from (
      select 'workspace' as kind, id as workspace_id, '' as id, revision from {here}.workspace
      union all select 'ledger', workspace_id, '', revision from {here}.ledger
      union all select 'hold', workspace_id, id::text, revision from {here}.hold
      union all select 'limit', workspace_id, subject || ' ' || currency, revision from {here}.spending_limit
      union all select 'member', workspace_id, user_id, revision from {here}.member
      union all select 'key', workspace_id, id::text, revision from {here}.api_key
      union all select 'webhook', workspace_id, id::text, revision from {here}.webhook) rows
    where $1::uuid is null or workspace_id = $1`
  for await (const rows of snapshot.batches(sql, [workspaceId]))
    yield rows.map(([kind, workspaceId, id, revision]) => ({
      kind: kind as CheckpointRow['kind'],
      workspaceId: idFromUuid('workspace', workspaceId as Uuid<'workspace'>),
      id: idKinds[kind!] ? idFromUuid(idKinds[kind!]!, id as Uuid) : id!,
      revision: Number(revision),
    }))
}

/** The ends of all event logs that are not empty. */
export async function* logEnds(
  snapshot: Snapshot,
  workspaceId: Uuid<'workspace'> | null,
): AsyncGenerator<CheckpointLog[]> {
  const sql = `
    select workspace_id, position, encode(journal_head, 'hex')
    from {here}.ledger where position > 0 and ($1::uuid is null or workspace_id = $1)`
  for await (const rows of snapshot.batches(sql, [workspaceId]))
    yield rows.map(([workspaceId, position, head]) => ({
      workspaceId: idFromUuid('workspace', workspaceId as Uuid<'workspace'>),
      position: Number(position),
      head: head!,
    }))
}

/** The last action of each audit. */
export async function* auditHeads(
  snapshot: Snapshot,
  workspaceId: Uuid<'workspace'> | null,
): AsyncGenerator<CheckpointAudit[]> {
  const sql = `
    select nullif(workspace_id, '00000000-0000-0000-0000-000000000000'), position, encode(mac, 'hex')
    from {here}.audit_head where position > 0 and ($1::uuid is null or workspace_id = $1)`
  for await (const rows of snapshot.batches(sql, [workspaceId]))
    yield rows.map(([workspaceId, position, head]) => ({
      workspaceId: workspaceId! && idFromUuid('workspace', workspaceId as Uuid<'workspace'>),
      position: Number(position),
      head: head!,
    }))
}

/** The current revisions of these rows, in their order; null for rows that no longer exist. */
export async function revisionsNow(snapshot: Snapshot, rows: readonly CheckpointRow[]): Promise<(string | null)[]> {
  const found = await snapshot.rows(
    `select coalesce(w.revision, l.revision, h.revision, s.revision, m.revision, k.revision, hook.revision)
     from unnest($1::text[], $2::uuid[], $3::text[], $4::uuid[])
       with ordinality as listed (kind, workspace_id, name, id, place)
     left join {here}.workspace w on kind = 'workspace' and w.id = listed.workspace_id
     left join {here}.ledger l on kind = 'ledger' and l.workspace_id = listed.workspace_id
     left join {here}.hold h on kind = 'hold' and h.workspace_id = listed.workspace_id and h.id = listed.id
     left join {here}.spending_limit s on kind = 'limit' and s.workspace_id = listed.workspace_id
       and s.subject = split_part(listed.name, ' ', 1) and s.currency = split_part(listed.name, ' ', 2)
     left join {here}.member m on kind = 'member' and m.workspace_id = listed.workspace_id and m.user_id = listed.name
     left join {here}.api_key k on kind = 'key' and k.id = listed.id
     left join {here}.webhook hook on kind = 'webhook' and hook.id = listed.id
     order by place`,
    [
      rows.map(row => row.kind),
      rows.map(row => uuidFromId('workspace', row.workspaceId)),
      rows.map(row => row.id),
      rows.map(({ kind, id }) => (idKinds[kind] ? uuidFromId(idKinds[kind], id) : null)),
    ],
  )
  return found.map(([revision]) => revision!)
}

/**
 * The event logs in their order: their current positions, and the MACs in hex of the last journal entries at the positions
 * of the checkpoint, empty if there is none. Null for logs of ledgers that no longer exist.
 */
export async function logsNow(
  snapshot: Snapshot,
  logs: readonly CheckpointLog[],
): Promise<({ position: string | null; head: string } | null)[]> {
  const found = await snapshot.rows(
    `select l.workspace_id, l.position, coalesce(encode(last.mac, 'hex'), '')
     from unnest($1::uuid[], $2::bigint[]) with ordinality as listed (workspace_id, position, place)
     left join {here}.ledger l on l.workspace_id = listed.workspace_id
     left join lateral (
       select mac from {here}.journal j
       where j.workspace_id = listed.workspace_id and j.position <= listed.position
       order by j.position desc limit 1) last on true
     order by place`,
    [logs.map(log => uuidFromId('workspace', log.workspaceId)), logs.map(log => log.position)],
  )
  return found.map(([workspaceId, position, head]) =>
    workspaceId === null ? null : { position: position!, head: head! },
  )
}

/** The MACs in hex of the actions that these audits ended with, in their order; null for actions that no longer exist. */
export async function actionMacs(snapshot: Snapshot, audits: readonly CheckpointAudit[]): Promise<(string | null)[]> {
  const found = await snapshot.rows(
    `select encode(action.mac, 'hex')
     from unnest($1::uuid[], $2::bigint[]) with ordinality as listed (workspace_id, position, place)
     left join lateral (
       select mac from {here}.audit a where a.workspace_id = listed.workspace_id and a.position = listed.position
       union all
       select mac from {here}.audit a
       where listed.workspace_id is null and a.workspace_id is null and a.position = listed.position
       limit 1) action on true
     order by place`,
    [audits.map(audit => uuidFromId('workspace', audit.workspaceId ?? '')), audits.map(audit => audit.position)],
  )
  return found.map(([mac]) => mac!)
}

const uploadPartStatement = statement(
  'upload-checkpoint-part',
  'insert into checkpoint_part (upload_id, part, content) values ($1, $2, $3) on conflict do nothing',
)

/** Stores a part; a part that is stored already is left unchanged. */
export async function uploadPart(db: Queryable, uploadId: string, part: number, content: string): Promise<void> {
  await run(db, uploadPartStatement, [uploadId, part, content])
}

const removeUploadsStatement = statement(
  'remove-checkpoint-uploads',
  `delete from checkpoint_part where upload_id = $1 or uploaded_at < now() - interval '1 day'`,
)

/** Removes an upload, and all uploads older than a day, which no verification has removed. */
export async function removeUploads(db: Queryable, uploadId: string): Promise<void> {
  await run(db, removeUploadsStatement, [uploadId])
}

/** A part has up to 500 entries, so a few are enough for one FETCH. */
const partsPerFetch = 4

/** The uploaded parts in order, unchanged. */
export async function* uploadedInOrder(snapshot: Snapshot, uploadId: string): AsyncGenerator<string[]> {
  const sql = 'select content from {schema}.checkpoint_part where upload_id = $1 order by part'
  for await (const rows of snapshot.batches(sql, [uploadId], partsPerFetch)) yield rows.map(([content]) => content!)
}
