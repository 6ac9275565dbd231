import { LockMode } from '@mikro-orm/core'
import { idFromUuid, type Uuid, uuidFromId } from '@workspace-wallet/contract'
import { kekOf } from '@workspace-wallet/runtime'
import { ApiKey } from '../api-keys/entities.ts'
import type { Em } from '../database/orm.ts'
import { textArray } from '../database/statement.ts'
import { absentId } from '../database/types.ts'
import { Webhook } from '../webhooks/entities.ts'

export type SecretHolder = ApiKey | Webhook
/** The objects that have secrets, in the order in which they are read. */
export const secretKinds = ['apiKey', 'webhook'] as const
export type SecretKind = (typeof secretKinds)[number]

const tables = { apiKey: 'api_key', webhook: 'webhook' } as const
/** Pages begin after this ID. */
export const firstOf = (kind: SecretKind): string => absentId(kind)

/** `after`: the last object of the previous page, or `firstOf`. `except`: key-encryption keys whose secrets are left out. */
type PageOfHolders = { after: string; except: readonly string[]; limit: number; isLocked?: boolean }

/** Objects with a secret under another key-encryption key than these, in order of their IDs. */
export async function findHolders(
  em: Em,
  kind: SecretKind,
  { after, except, limit, isLocked = false }: PageOfHolders,
): Promise<SecretHolder[]> {
  // The second part of an encrypted secret is the ID of its key-encryption key (packages/runtime/src/secrets.ts).
  const rows = await em.execute<{ id: Uuid }[]>(
    `select id from ${tables[kind]}
     where id > ? and (secret <> '' and split_part(secret, '.', 2) <> all (?::text[])
       or previous_secret is not null and split_part(previous_secret, '.', 2) <> all (?::text[]))
     order by id limit ?`,
    [uuidFromId(kind, after), textArray(except), textArray(except), limit],
  )
  const lockMode = isLocked ? LockMode.PESSIMISTIC_WRITE : LockMode.NONE
  const options = { orderBy: { id: 'asc' }, lockMode } as const
  const idsOf = <Kind extends SecretKind>(kind: Kind) => ({
    id: { $in: rows.map(({ id }) => idFromUuid(kind, id as Uuid<Kind>)) },
  })
  return kind === 'apiKey' ? em.find(ApiKey, idsOf(kind), options) : em.find(Webhook, idsOf(kind), options)
}

const pageSize = 500

/** All of them, page by page. `except` is asked before each page. @param em is forked for each page, so that memory is bounded */
export async function* allHolders(em: Em, except: () => readonly string[] = () => []): AsyncGenerator<SecretHolder> {
  for (const kind of secretKinds)
    for (let after = firstOf(kind), length = pageSize; length === pageSize; ) {
      const page = await findHolders(em.fork(), kind, { after, except: except(), limit: pageSize })
      yield* page
      length = page.length
      after = page.at(-1)?.id ?? after
    }
}

/** The encrypted secrets of an object, each with its version and the ID of its key-encryption key. */
export function secretsOf({ secret, secretVersion, previousSecret }: SecretHolder) {
  return [
    { secret, version: secretVersion },
    { secret: previousSecret ?? '', version: secretVersion - 1 },
  ].flatMap(each => (each.secret === '' ? [] : { ...each, kek: kekOf(each.secret) }))
}
