import { type Queryable, run, statement } from '../../database/statement.ts'
import type { Snapshot } from '../verify/snapshot.ts'

/** How far a wallet's chain has come; `head` in hex. Ids are UUIDs. */
export type SealedWallet = { workspaceId: string; walletId: string; sequence: number; head: string }

/** The database's clock, ISO 8601. */
export async function snapshotTime(snapshot: Snapshot): Promise<string> {
  const [row] = await snapshot.rows(`select to_char(clock_timestamp(), 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`)
  return row![0]!
}

/** All wallets in the order of their keys. */
export async function* headsInOrder(snapshot: Snapshot, workspaceId: string | null): AsyncGenerator<SealedWallet[]> {
  const sql = `
    select workspace_id, id, sequence, encode(head, 'hex')
    from public.wallet where $1::uuid is null or workspace_id = $1
    order by workspace_id, id`
  for await (const rows of snapshot.batches(sql, [workspaceId]))
    yield rows.map(([workspaceId, walletId, sequence, head]) => ({
      workspaceId: workspaceId!,
      walletId: walletId!,
      sequence: Number(sequence),
      head: head!,
    }))
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

/** Rows of one FETCH: a part has up to 500 wallets. */
const partsPerFetch = 4

/** The uploaded parts, in order, as they were sent. */
export async function* uploadedInOrder(snapshot: Snapshot, uploadId: string): AsyncGenerator<string[]> {
  const sql = 'select content from public.checkpoint_part where upload_id = $1 order by part'
  for await (const rows of snapshot.batches(sql, [uploadId], partsPerFetch)) yield rows.map(([content]) => content!)
}
