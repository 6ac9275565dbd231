import type { FilterQuery } from '@mikro-orm/core'
import {
  type FindResult,
  type FoundKind,
  type FoundObject,
  formatBalance,
  foundLimit,
  type IdKind,
  idFromUuid,
  idPrefixes,
  isDomainError,
  type Uuid,
  uuidFromId,
  uuidPattern,
} from '@workspace-wallet/contract'
import { ApiKey } from '../api-keys/entities.ts'
import { AuditEntry } from '../audit/entities.ts'
import type { Em } from '../database/orm.ts'
import { idToFind } from '../database/types.ts'
import { Journal } from '../events/entities.ts'
import { Hold } from '../holds/entities.ts'
import { Operator } from '../operators/entities.ts'
import { Refusal } from '../refusals/entities.ts'
import { Transfer } from '../transfers/entities.ts'
import { Wallet } from '../wallets/entities.ts'
import { transfersOfFlow } from '../wallets/queries.ts'
import { Webhook } from '../webhooks/entities.ts'
import { Member, Workspace } from '../workspaces/entities.ts'
import { type Searcher, type SearchParts, searchInSlot, takeSlot } from './bounded-search.ts'

/** One comparison with the text: what is searched, by which of its columns, and how. */
type Lookup = { kind: FoundKind; by: string; read: (em: Em, text: string) => Promise<FoundObject[]> }

/**
 * Everything that a text names: an ID of any kind is looked up as such, any other text is compared with names that are chosen by
 * clients and operators, and with the UUIDs of IDs. Each comparison runs alone: if one takes too long, the others still count. All of
 * them have one slot, so that they wait only once.
 *
 * @throws DomainError S002 if too many searches wait
 */
export async function findByText(core: SearchParts, by: Searcher, text: string): Promise<FindResult> {
  const results = await takeSlot(core, by, () => runLookups(core, text))
  return {
    found: results.flatMap(({ found }) => found?.slice(0, foundLimit) ?? []),
    searched: results.map(({ lookup: { kind, by }, found }) => ({
      kind,
      by,
      isComplete: found !== null && found.length <= foundLimit,
    })),
  }
}

/** What was found in all places: at most `foundLimit` by each comparison. */
export function mergeFound(results: readonly FindResult[]): FindResult {
  const [{ searched: lookups }] = results as [FindResult]
  const merged = lookups.map(({ kind, by }, index) => {
    const found = results.flatMap(result => result.found.filter(each => each.kind === kind && each.by === by))
    const isComplete = found.length <= foundLimit && results.every(({ searched }) => searched[index]!.isComplete)
    return { found: found.slice(0, foundLimit), searched: { kind, by, isComplete } }
  })
  return { found: merged.flatMap(({ found }) => found), searched: merged.map(({ searched }) => searched) }
}

async function runLookups(core: SearchParts, text: string) {
  const results = []
  for (const lookup of lookupsFor(text)) results.push({ lookup, found: await lookUp(core, lookup, text) })
  return results
}

/** Null if it took too long. */
async function lookUp(core: SearchParts, { read }: Lookup, text: string): Promise<FoundObject[] | null> {
  try {
    return await searchInSlot(core, { blamed: 'text', read: em => read(em, text) })
  } catch (error) {
    if (isDomainError(error) && error.code === 'S012') return null
    throw error
  }
}

function lookupsFor(text: string): readonly Lookup[] {
  const kind = (Object.keys(idPrefixes) as IdKind[]).find(each => uuidFromId(each, text))
  if (kind) return byId[kind]
  // Clients may choose a UUID as a name, too.
  return uuidPattern.test(text) ? [...byName, ...byUuid] : byName
}

const newest = { limit: foundLimit + 1 } as const
const newestFirst = { ...newest, orderBy: { createdAt: 'desc' } } as const

const workspaces = lookup('workspace', 'id', async (em, text) =>
  (await em.find(Workspace, { id: idToFind('workspace', text) }, newest)).map(workspaceFound),
)
const apiKeys = lookup('apiKey', 'id', async (em, text) =>
  (await em.find(ApiKey, { id: idToFind('apiKey', text) }, newest)).map(({ id, workspaceId, name, ownerUserId }) => ({
    id,
    workspaceId,
    summary: name || `of ${ownerUserId}`,
  })),
)
const wallets = (by: 'id' | 'bizId') =>
  lookup('wallet', by, async (em, text) =>
    (await em.find(Wallet, { [by]: text, kind: 'CUSTOMER' }, newestFirst)).map(
      ({ id, workspaceId, name, currency }) => ({
        id,
        workspaceId,
        summary: `${name} (${currency})`,
      }),
    ),
  )
const holds = (by: 'id' | 'bizId' | 'reference') =>
  lookup('hold', by, async (em, text) =>
    (await em.find(Hold, { [by]: text }, newestFirst)).map(({ id, workspaceId, amount, currency }) => ({
      id,
      workspaceId,
      summary: `${formatBalance(amount, currency)} ${currency}`,
    })),
  )
const transfers = (by: 'id' | 'bizId' | 'reference' | 'requestId') =>
  lookup('transfer', by, async (em, text) => findTransfersBy(em, { [by]: text }))
const webhooks = (by: 'id' | 'bizId') =>
  lookup('webhook', by, async (em, text) =>
    (await em.find(Webhook, { [by]: text }, newestFirst)).map(({ id, workspaceId, url }) => ({
      id,
      workspaceId,
      summary: url,
    })),
  )
const events = (by: 'id' | 'requestId') =>
  lookup('event', by, async (em, text) =>
    (await em.find(Journal, { [by]: text }, newestFirst)).map(({ id, workspaceId, type }) => ({
      id,
      workspaceId,
      summary: type,
    })),
  )

/** The event of a transfer has its UUID. */
const transferOfEvent = lookup('transfer', 'eventId', (em, text) =>
  findTransfersBy(em, { id: idFromUuid('transfer', uuidFromId('event', text) as string as Uuid<'transfer'>) }),
)

/** The flows of a transfer have its UUID, one of them with the last bit flipped. */
const transferOfFlow = lookup('transfer', 'flowId', (em, text) => {
  const ids = transfersOfFlow(uuidFromId('flow', text)!).map(uuid => idFromUuid('transfer', uuid))
  return findTransfersBy(em, { id: { $in: ids } })
})

const byId: Record<IdKind, readonly Lookup[]> = {
  workspace: [workspaces],
  apiKey: [apiKeys],
  wallet: [wallets('id')],
  transfer: [transfers('id')],
  flow: [transferOfFlow],
  hold: [holds('id')],
  event: [events('id'), transferOfEvent],
  webhook: [webhooks('id')],
}

/** IDs as PostgreSQL stores them, and as its statements and its log show them. */
const byUuid: readonly Lookup[] = (
  ['workspace', 'apiKey', 'wallet', 'transfer', 'hold', 'event', 'webhook'] as const
).map(kind => {
  const [{ read, ...rest }] = byId[kind] as readonly [Lookup]
  return { ...rest, read: (em, text) => read(em, idFromUuid(kind, text as Uuid<typeof kind>)) }
})

/** Without the JSON of what changed, which may be long. */
const auditFields = ['id', 'workspaceId', 'action', 'actor'] as const

const byName: readonly Lookup[] = [
  transfers('bizId'),
  transfers('reference'),
  transfers('requestId'),
  holds('bizId'),
  holds('reference'),
  wallets('bizId'),
  webhooks('bizId'),
  events('requestId'),
  lookup('audit', 'requestId', async (em, text) =>
    (await em.find(AuditEntry, { requestId: text }, { ...newest, fields: auditFields, orderBy: { id: 'desc' } })).map(
      ({ id, workspaceId = null, action, actor }) => ({
        id: String(id),
        workspaceId,
        summary: `${action} by ${actor}`,
      }),
    ),
  ),
  lookup('refusal', 'requestId', async (em, text) =>
    (await em.find(Refusal, { requestId: text }, { ...newest, orderBy: { id: 'desc' } })).map(
      ({ id, code, method, route }) => ({
        id: String(id),
        workspaceId: null,
        summary: `${code} for ${method} ${route}`,
      }),
    ),
  ),
  lookup('member', 'userId', async (em, text) =>
    (await em.find(Member, { userId: text }, newestFirst)).map(({ workspaceId, userId, removedAt }) => ({
      id: userId,
      workspaceId,
      summary: removedAt ? 'removed' : 'member',
    })),
  ),
  lookup('workspace', 'name', async (em, text) =>
    (await em.find(Workspace, { name: text }, newestFirst)).map(workspaceFound),
  ),
  lookup('operator', 'name', async (em, text) =>
    (await em.find(Operator, { name: text }, newestFirst)).map(({ name, role }) => ({
      id: name,
      workspaceId: null,
      summary: role,
    })),
  ),
]

function lookup(
  kind: FoundKind,
  by: string,
  read: (em: Em, text: string) => Promise<Omit<FoundObject, 'kind' | 'by'>[]>,
): Lookup {
  return { kind, by, read: async (em, text) => (await read(em, text)).map(found => ({ kind, by, ...found })) }
}

async function findTransfersBy(em: Em, where: FilterQuery<Transfer>) {
  const found = await em.find(Transfer, where, newestFirst)
  return found.map(({ id, workspaceId, type, amount, currency }) => ({
    id,
    workspaceId,
    summary: `${type} of ${formatBalance(amount, currency)} ${currency}`,
  }))
}

function workspaceFound({ id, name, deletedAt }: Workspace) {
  return { id, workspaceId: id, summary: deletedAt ? `${name} (deleted)` : name }
}
