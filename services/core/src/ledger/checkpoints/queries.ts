import { type CheckpointAudit, type CheckpointRow, idFromUuid, uuidFromId } from '@workspace-wallet/contract'
import type { Snapshot } from '../../database/snapshot.ts'
import { type Queryable, run, statement } from '../../database/statement.ts'

/** How far a wallet's chain has come; `head` in hex. Ids are UUIDs. */
export type CheckpointWallet = {
  workspaceId: string
  walletId: string
  sequence: number
  head: string
  revision: number
}

/** The database's clock, ISO 8601. */
export async function snapshotTime(snapshot: Snapshot): Promise<string> {
  const [row] = await snapshot.rows(`select to_char(clock_timestamp(), 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`)
  return row![0]!
}

/** All wallets in the order of their keys. */
export async function* headsInOrder(
  snapshot: Snapshot,
  workspaceId: string | null,
): AsyncGenerator<CheckpointWallet[]> {
  const sql = `
    select workspace_id, id, sequence, encode(head, 'hex'), revision
    from public.wallet where $1::uuid is null or workspace_id = $1
    order by workspace_id, id`
  for await (const rows of snapshot.batches(sql, [workspaceId]))
    yield rows.map(([workspaceId, walletId, sequence, head, revision]) => ({
      workspaceId: workspaceId!,
      walletId: walletId!,
      sequence: Number(sequence),
      head: head!,
      revision: Number(revision),
    }))
}

/** Every other row that is signed. */
export async function* signedRows(snapshot: Snapshot, workspaceId: string | null): AsyncGenerator<CheckpointRow[]> {
  const sql = `
    select kind, workspace_id, id, revision from (
      select 'workspace' as kind, id as workspace_id, '' as id, revision from public.workspace
      union all select 'ledger', workspace_id, '', revision from public.ledger
      union all select 'member', workspace_id, user_id, revision from public.member
      union all select 'key', workspace_id, id::text, revision from public.api_key) rows
    where $1::uuid is null or workspace_id = $1`
  for await (const rows of snapshot.batches(sql, [workspaceId]))
    yield rows.map(([kind, workspaceId, id, revision]) => ({
      kind: kind as CheckpointRow['kind'],
      workspaceId: idFromUuid('workspace', workspaceId!),
      id: kind === 'key' ? idFromUuid('apiKey', id!) : id!,
      revision: Number(revision),
    }))
}

/** How far each audit has come. */
export async function* auditHeads(snapshot: Snapshot, workspaceId: string | null): AsyncGenerator<CheckpointAudit[]> {
  const sql = `
    select nullif(workspace_id, '00000000-0000-0000-0000-000000000000'), position, encode(mac, 'hex')
    from public.audit_head where position > 0 and ($1::uuid is null or workspace_id = $1)`
  for await (const rows of snapshot.batches(sql, [workspaceId]))
    yield rows.map(([workspaceId, position, head]) => ({
      workspaceId: workspaceId! && idFromUuid('workspace', workspaceId!),
      position: Number(position),
      head: head!,
    }))
}

/** How often these rows were written by now, in their order; null for those that are gone. */
export async function revisionsNow(snapshot: Snapshot, rows: readonly CheckpointRow[]): Promise<(string | null)[]> {
  const found = await snapshot.rows(
    `select coalesce(w.revision, l.revision, m.revision, k.revision)
     from unnest($1::text[], $2::uuid[], $3::text[], $4::uuid[])
       with ordinality as listed (kind, workspace_id, user_id, key_id, place)
     left join public.workspace w on kind = 'workspace' and w.id = listed.workspace_id
     left join public.ledger l on kind = 'ledger' and l.workspace_id = listed.workspace_id
     left join public.member m on kind = 'member' and m.workspace_id = listed.workspace_id and m.user_id = listed.user_id
     left join public.api_key k on kind = 'key' and k.id = listed.key_id
     order by place`,
    [
      rows.map(row => row.kind),
      rows.map(row => uuidFromId('workspace', row.workspaceId)),
      rows.map(row => row.id),
      rows.map(row => uuidFromId('apiKey', row.id)),
    ],
  )
  return found.map(([revision]) => revision!)
}

/** The MACs, in hex, of the actions that were the last ones of these audits, in their order; null for those that are gone. */
export async function actionMacs(snapshot: Snapshot, audits: readonly CheckpointAudit[]): Promise<(string | null)[]> {
  const found = await snapshot.rows(
    `select encode(action.mac, 'hex')
     from unnest($1::uuid[], $2::bigint[]) with ordinality as listed (workspace_id, position, place)
     left join lateral (
       select mac from public.audit a where a.workspace_id = listed.workspace_id and a.position = listed.position
       union all
       select mac from public.audit a
       where listed.workspace_id is null and a.workspace_id is null and a.position = listed.position
       limit 1) action on true
     order by place`,
    [audits.map(audit => uuidFromId('workspace', audit.workspaceId ?? '')), audits.map(audit => audit.position)],
  )
  return found.map(([mac]) => mac!)
}

const uploadPartStatement = statement(
  'upload-checkpoint-part',
  'insert into public.checkpoint_part (upload_id, part, content) values ($1, $2, $3) on conflict do nothing',
)

/** Keeps a part until the verification that it is for has read it. Sent again, it is kept once. */
export async function uploadPart(db: Queryable, uploadId: string, part: number, content: string): Promise<void> {
  await run(db, uploadPartStatement, [uploadId, part, content])
}

const removeUploadsStatement = statement(
  'remove-checkpoint-uploads',
  `delete from public.checkpoint_part where upload_id = $1 or uploaded_at < clock_timestamp() - interval '1 day'`,
)

/** Removes an upload, and those that nobody came back for. */
export async function removeUploads(db: Queryable, uploadId: string): Promise<void> {
  await run(db, removeUploadsStatement, [uploadId])
}

/** Rows of one FETCH: a part has up to 500 entries. */
const partsPerFetch = 4

/** The uploaded parts, in order, as they were sent. */
export async function* uploadedInOrder(snapshot: Snapshot, uploadId: string): AsyncGenerator<string[]> {
  const sql = 'select content from public.checkpoint_part where upload_id = $1 order by part'
  for await (const rows of snapshot.batches(sql, [uploadId], partsPerFetch)) yield rows.map(([content]) => content!)
}
