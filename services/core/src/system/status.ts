import {
  DomainError,
  expiringWithinDays,
  idFromUuid,
  type SystemStatus,
  searchLimitMs,
  statusListLimit,
  unusedForDays,
} from '@workspace-wallet/contract'
import manifest from '../../package.json' with { type: 'json' }
import { ApiKey } from '../api-keys/entities.ts'
import { databaseTime } from '../database/clock.ts'
import type { Em } from '../database/orm.ts'
import { isGenuine, type SignedEntity } from '../database/row-signer.ts'
import { listInstances } from '../instances/list.ts'
import { findLastBackup, findLastCheckpoint, findLastVerification } from '../integrity/records.ts'
import { findHaltedLedgers } from '../ledger/store/halt.ts'
import { Operator } from '../operators/entities.ts'
import { takeInTurns } from '../places/merge.ts'
import { type Searcher, type SearchParts, searchIn, tooExpensive } from '../search/bounded-search.ts'

type Parts = SearchParts & Parameters<typeof findLastVerification>[0]

const dayMs = 86_400_000

/** What an S012 of this file names, which no caller gets. */
const blamed = 'status'

/** What operators look at first. Whatever the role of the service has written, it is answered. */
export async function readStatus(core: Parts, by: Searcher): Promise<SystemStatus> {
  const credentials = await readCredentials(core, by)
  const stored = await searchIn(core, by, { blamed, read: readStored })
  const halted = await findHaltedLedgers(core.reads, statusListLimit)
  const { versions, ...rest } = stored
  return {
    ...rest,
    versions: { core: manifest.version, node: process.version, ...versions },
    halted: halted.map(({ workspaceId, reason }) => ({
      workspaceId: idFromUuid('workspace', workspaceId),
      reason: reason ?? '',
    })),
    lastVerification: await findLastVerification(core),
    lastWholeVerification: await findLastVerification(core, ['WHOLE']),
    lastCheckpoint: await findLastCheckpoint(core),
    lastBackup: await findLastBackup(core),
    credentials,
  }
}

/** What is to be seen first in all places. Instances and versions are those of the first, which is home. */
export function mergeStatuses([home, ...others]: readonly SystemStatus[]): SystemStatus {
  const all = [home!, ...others]
  const credentials = all.flatMap(({ credentials }) => credentials ?? [])
  return {
    ...home!,
    halted: takeInTurns(
      all.map(({ halted }) => halted),
      statusListLimit,
    ),
    lastVerification: earliest(all.map(({ lastVerification }) => lastVerification)),
    lastWholeVerification: earliest(all.map(({ lastWholeVerification }) => lastWholeVerification)),
    lastCheckpoint: earliest(all.map(({ lastCheckpoint }) => lastCheckpoint)),
    lastBackup: earliest(all.map(({ lastBackup }) => lastBackup)),
    credentials:
      credentials.length < all.length
        ? null
        : {
            expiringKeys: firstOf(
              credentials.map(each => each.expiringKeys),
              by('expiresAt'),
            ),
            expiringOperators: home!.credentials!.expiringOperators,
            unusedKeys: firstOf(
              credentials.map(each => each.unusedKeys),
              by('lastUsedAt'),
            ),
          },
  }
}

/** What is longest ago: it says since when all places are known to be sound, or saved. Null if a place has none. */
function earliest<Record extends { at: Date }>(records: readonly (Record | null)[]): Record | null {
  const found = records.filter(record => record !== null)
  return found.length < records.length ? null : found.reduce((first, each) => (each.at < first.at ? each : first))
}

function firstOf<Item>(lists: readonly (readonly Item[])[], compare: (a: Item, b: Item) => number): Item[] {
  return lists.length === 1 ? [...lists[0]!] : lists.flat().sort(compare).slice(0, statusListLimit)
}

const by =
  <Name extends string>(name: Name) =>
  (a: Record<Name, Date | null>, b: Record<Name, Date | null>) =>
    (a[name]?.getTime() ?? 0) - (b[name]?.getTime() ?? 0)

async function readStored(em: Em) {
  const now = await databaseTime(em)
  return { now, versions: await readVersions(em), instances: await listInstances(em, now) }
}

/** Null if there are so many forged rows that the search takes too long. */
async function readCredentials(core: Parts, by: Searcher): Promise<SystemStatus['credentials']> {
  try {
    return await searchIn(core, by, { blamed, read: findCredentials })
  } catch (error) {
    if (error instanceof DomainError && error.code === 'S012') return null
    throw error
  }
}

/** Rows that were modified outside the service give no access: they neither expire nor go unused. */
async function findCredentials(em: Em): Promise<NonNullable<SystemStatus['credentials']>> {
  const now = await databaseTime(em)
  const expiresSoon = { $gt: now, $lte: new Date(now.getTime() + expiringWithinDays * dayMs) }
  const unusedSince = new Date(now.getTime() - unusedForDays * dayMs)
  const active = { status: 'ACTIVE', deletedAt: null } as const
  const isUnused = {
    ...active,
    createdAt: { $lt: unusedSince },
    $and: [
      { $or: [{ lastUsedAt: null }, { lastUsedAt: { $lt: unusedSince } }] },
      { $or: [{ expiresAt: null }, { expiresAt: { $gt: now } }] },
    ],
  }
  const until = performance.now() + searchLimitMs
  const expiringKeys = await firstGenuine(until, page =>
    em.findByCursor(ApiKey, {
      where: { ...active, expiresAt: expiresSoon },
      orderBy: { expiresAt: 'asc', id: 'asc' },
      ...page,
    }),
  )
  const expiringOperators = await firstGenuine(until, page =>
    em.findByCursor(Operator, {
      where: { status: 'ACTIVE', expiresAt: expiresSoon },
      orderBy: { expiresAt: 'asc', name: 'asc' },
      ...page,
    }),
  )
  const unusedKeys = await firstGenuine(until, page =>
    em.findByCursor(ApiKey, { where: isUnused, orderBy: { createdAt: 'asc', id: 'asc' }, ...page }),
  )
  return {
    expiringKeys: expiringKeys.map(key => ({ ...shown(key), expiresAt: key.expiresAt! })),
    expiringOperators: expiringOperators.map(({ name, expiresAt }) => ({ name, expiresAt: expiresAt! })),
    unusedKeys: unusedKeys.map(key => ({ ...shown(key), lastUsedAt: key.lastUsedAt ?? null })),
  }
}

const rowsPerPage = 500

type Page<Row> = { items: Row[]; endCursor: string | null; hasNextPage: boolean }

/** The first genuine rows. Others that somebody has written before them do not hide them, but with too many it fails. */
async function firstGenuine<Row extends SignedEntity>(
  until: number,
  read: (page: { first: number; after?: string; includeCount: false }) => Promise<Page<Row>>,
): Promise<Row[]> {
  const found: Row[] = []
  let after: string | undefined
  do {
    if (performance.now() > until) throw tooExpensive(blamed)
    const page = await read({ first: rowsPerPage, ...(after && { after }), includeCount: false })
    found.push(...page.items.filter(isGenuine))
    after = page.hasNextPage ? page.endCursor! : undefined
  } while (after && found.length < statusListLimit)
  return found.slice(0, statusListLimit)
}

async function readVersions(em: Em): Promise<{ postgresql: string; schema: string[] }> {
  const rows = await em.execute<{ version: string; name: string }[]>(
    `select current_setting('server_version') as version, name from mikro_orm_migrations order by id`,
  )
  return { postgresql: rows[0]?.version ?? '', schema: rows.map(({ name }) => name) }
}

function shown({ id, workspaceId, ownerUserId, name }: ApiKey) {
  return { apiKey: id, workspaceId, ownerUserId, name }
}
