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

/** Rows that a page reads at most, also if it finds nothing: rewrapping locks changes of access meanwhile. */
const rowsPerPage = 5_000
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
  const table = tables[kind]
  // The second part of an encrypted secret is the ID of its key-encryption key (packages/runtime/src/secrets.ts).
  const [found] = await em.execute<[{ ids: Uuid[]; end: Uuid | null }]>(
    `select array(
       select id from (select id, secret, previous_secret from ${table} where id > ? order by id limit ${rowsPerPage}) page
       where secret <> '' and split_part(secret, '.', 2) <> all (?::text[])
         or previous_secret is not null and split_part(previous_secret, '.', 2) <> all (?::text[])
       order by id limit ?) as ids,
       (select id from ${table} where id > ? order by id offset ${rowsPerPage - 1} limit 1) as end`,
    [first, textArray(except), textArray(except), limit, first],
  )
  const { ids, end } = found
  const lockMode = isLocked ? LockMode.PESSIMISTIC_WRITE : LockMode.NONE
  const options = { orderBy: { id: 'asc' }, lockMode } as const
  const idsOf = <Kind extends SecretKind>(kind: Kind) => ({
    id: { $in: ids.map(id => idFromUuid(kind, id as Uuid<Kind>)) },
  })
  const holders: SecretHolder[] =
    kind === 'apiKey' ? await em.find(ApiKey, idsOf(kind), options) : await em.find(Webhook, idsOf(kind), options)
  const last = ids.length === limit ? ids.at(-1) : end
  if (last) return { holders, next: idFromUuid(kind, last) }
  return { holders, next: kind === 'apiKey' ? absentId('webhook') : null }
}

const pageSize = 100

/**
 * Pages of all API keys and webhooks with secrets.
 *
 * @param em is forked for each page, so that memory is bounded
 * @param except called before each page: key-encryption keys whose secrets are left out
 */
export async function* pagesOfHolders(em: Em, except: () => readonly string[]): AsyncGenerator<SecretHolder[]> {
  for (let after: string | null | undefined; after !== null; ) {
    const page: PageOfHolders = await findHolders(em.fork(), { after, except: except(), limit: pageSize })
    yield page.holders
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
