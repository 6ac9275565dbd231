import { LockMode } from '@mikro-orm/core'
import { DomainError, idFromUuid, type Uuid, uuidFromId } from '@workspace-wallet/contract'
import { kekOf } from '@workspace-wallet/runtime'
import { ApiKey } from '../api-keys/entities.ts'
import type { Em } from '../database/orm.ts'
import { textArray } from '../database/statement.ts'
import { absentId } from '../database/types.ts'
import { Webhook } from '../webhooks/entities.ts'

export type SecretHolder = ApiKey | Webhook
type SecretKind = 'apiKey' | 'webhook'

const tables = { apiKey: 'api_key', webhook: 'webhook' } as const

/** `after`: the last object of the previous page. `except`: key-encryption keys whose secrets are left out. */
type PageRequest = { after?: string | undefined; except: readonly string[]; limit: number; isLocked?: boolean }
/** `next`: the `after` of the next page; null after the last one. */
type PageOfHolders = { holders: SecretHolder[]; next: string | null }

/** The kind of the objects on the page after `after`: API keys first, then webhooks. */
export function kindAfter(after: string | undefined): SecretKind {
  return after !== undefined && uuidFromId('webhook', after) ? 'webhook' : 'apiKey'
}

/**
 * Objects of one kind with a secret under another key-encryption key than these, in order of their IDs.
 *
 * @throws DomainError S012 if `after` is no ID of an API key or webhook
 */
export async function findHolders(
  em: Em,
  { after, except, limit, isLocked = false }: PageRequest,
): Promise<PageOfHolders> {
  const kind = kindAfter(after)
  const first = uuidFromId(kind, after ?? absentId(kind))
  if (!first) throw new DomainError('S012', { field: 'after', reason: 'NOT_A_POSITION' })
  // The second part of an encrypted secret is the ID of its key-encryption key (packages/runtime/src/secrets.ts).
  const rows = await em.execute<{ id: Uuid }[]>(
    `select id from ${tables[kind]}
     where id > ? and (secret <> '' and split_part(secret, '.', 2) <> all (?::text[])
       or previous_secret is not null and split_part(previous_secret, '.', 2) <> all (?::text[]))
     order by id limit ?`,
    [first, textArray(except), textArray(except), limit],
  )
  const lockMode = isLocked ? LockMode.PESSIMISTIC_WRITE : LockMode.NONE
  const options = { orderBy: { id: 'asc' }, lockMode } as const
  const idsOf = <Kind extends SecretKind>(kind: Kind) => ({
    id: { $in: rows.map(({ id }) => idFromUuid(kind, id as Uuid<Kind>)) },
  })
  const holders: SecretHolder[] =
    kind === 'apiKey' ? await em.find(ApiKey, idsOf(kind), options) : await em.find(Webhook, idsOf(kind), options)
  if (rows.length === limit) return { holders, next: idFromUuid(kind, rows.at(-1)!.id) }
  return { holders, next: kind === 'apiKey' ? absentId('webhook') : null }
}

const pageSize = 100

/**
 * All API keys and webhooks with secrets, one page at a time.
 *
 * @param em is forked for each page, so that memory is bounded
 * @param except called before each page: key-encryption keys whose secrets are left out
 */
export async function* allHolders(em: Em, except: () => readonly string[]): AsyncGenerator<SecretHolder> {
  for (let after: string | null | undefined; after !== null; ) {
    const page: PageOfHolders = await findHolders(em.fork(), { after, except: except(), limit: pageSize })
    yield* page.holders
    after = page.next
  }
}

/** The encrypted secrets of an object, each with its version and the ID of its key-encryption key. */
export function secretsOf({ secret, secretVersion, previousSecret }: SecretHolder) {
  return [
    { secret, version: secretVersion },
    { secret: previousSecret ?? '', version: secretVersion - 1 },
  ].flatMap(each => (each.secret === '' ? [] : { ...each, kek: kekOf(each.secret) }))
}
