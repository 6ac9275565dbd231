import { plainArray, type Queryable, run, statement } from '../db/statement.ts'
import type { Snapshot } from './verify-snapshot.ts'

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
    from wallet where $1::uuid is null or workspace_id = $1
    order by workspace_id, id`
  for await (const rows of snapshot.batches(sql, [workspaceId]))
    yield rows.map(([workspaceId, walletId, sequence, head]) => ({
      workspaceId: workspaceId!,
      walletId: walletId!,
      sequence: Number(sequence),
      head: head!,
    }))
}

type FoundRow = { at: number; sequence: number | null; mac: string | null }

const findSealedStatement = statement<FoundRow>(
  'find-sealed',
  `select asked.at, w.sequence, encode(f.mac, 'hex') as mac
   from unnest($1::uuid[], $2::uuid[], $3::bigint[]) with ordinality as asked (workspace_id, wallet_id, sequence, at)
   left join lateral (
     select sequence from wallet where wallet.workspace_id = asked.workspace_id and wallet.id = asked.wallet_id limit 1
   ) w on true
   left join lateral (
     select mac from flow
     where flow.workspace_id = asked.workspace_id and flow.wallet_id = asked.wallet_id
       and flow.sequence = asked.sequence limit 1) f on true`,
)

/**
 * How far these wallets are now, and the MAC of the flow that was their last one, by position. Both null when there
 * is none.
 */
export async function findSealed(
  db: Queryable,
  keys: { workspaceId: string; walletId: string; sequence: number }[],
): Promise<Map<number, { sequence: number | null; mac: string | null }>> {
  const rows = await run(db, findSealedStatement, [
    plainArray(keys.map(key => key.workspaceId)),
    plainArray(keys.map(key => key.walletId)),
    plainArray(keys.map(key => key.sequence)),
  ])
  return new Map(rows.map(({ at, ...found }) => [at - 1, found]))
}
