import type { RefusalReport } from '@workspace-wallet/contract'
import { type Queryable, run, statement } from '../database/statement.ts'

/** Maximum number of stored calls with a valid signature, and of others: nobody without a key displaces those with one. */
export const mostOfEach = 50_000
/** Removed at most at once of each kind, which is more than is added meanwhile (see intake.ts). */
const removedAtOnce = 10_000

const insertStatement = statement(
  'insert-refusals',
  `insert into refusal (at, gateway, method, route, code, step, detail, api_key, address, request_id, is_signed)
   select greatest(least((r ->> 'at')::timestamptz, now()), now() - interval '1 hour'), $1, r ->> 'method', r ->> 'route',
     r ->> 'code', r ->> 'step', left(r ->> 'detail', 300), r ->> 'apiKey', r ->> 'address', r ->> 'requestId',
     (r ->> 'isSigned')::boolean
   from jsonb_array_elements($2::jsonb) r`,
)

/** Stores what a gateway has reported. */
export async function insertRefusals(
  db: Queryable,
  gateway: string,
  refusals: readonly RefusalReport[],
): Promise<void> {
  await run(db, insertStatement, [gateway, JSON.stringify(refusals)])
}

// The oldest rows have the lowest IDs. Failed inserts leave gaps, so fewer rows than the limit may remain.
const removeStatement = statement(
  'remove-old-refusals',
  `with oldest as (
     select kind.is_signed, o.id, o.received_at
     from (values (true), (false)) kind (is_signed), lateral (
       select id, received_at from refusal r where r.is_signed = kind.is_signed order by r.id limit ${removedAtOnce}) o),
   newest as (
     select kind.is_signed, n.id
     from (values (true), (false)) kind (is_signed), lateral (
       select id from refusal r where r.is_signed = kind.is_signed order by r.id desc offset $1 limit 1) n)
   delete from refusal where id in (
     select o.id from oldest o left join newest n on n.is_signed = o.is_signed
     where o.received_at < now() - interval '7 days' or o.id <= n.id)`,
)

/** Removes calls that are older than seven days, and the oldest above `most` of each kind. */
export async function removeOldRefusals(db: Queryable, most = mostOfEach): Promise<void> {
  await run(db, removeStatement, [most])
}
