import { createHmac, type KeyObject } from 'node:crypto'
import {
  type AuditAction,
  DomainError,
  type LatestNonceGenerations,
  type NonceGeneration,
  type nonceGenerationInput,
} from '@workspace-wallet/contract'
import type { z } from 'zod'
import { type FoundAction, readAction, selectAction } from '../audit/chain.ts'
import { recordAction } from '../audit/record.ts'
import { databaseTime } from '../database/clock.ts'
import type { Em } from '../database/orm.ts'
import { lockAccess } from './revision.ts'

const action = 'nonces.begin' satisfies AuditAction
/** How long after a generation began another one can begin: whoever has the token of a gateway cannot fill the audit log. */
const minIntervalMs = 1_000

/**
 * Records a generation of the nonce store as the latest of its partitions, if it is not recorded yet. Gateways accept requests
 * only in a recorded generation, so none has been accepted in a partition before its first one.
 *
 * Entries of the audit that the service has not written count for nothing, and delay nothing, however many there are: the generations
 * are numbered from 1, and an entry is found by its ID or by a tag of its number. Nobody without the chain key knows either before the
 * entry exists, so it comes before all forged ones that have the same.
 *
 * @throws DomainError S002 if another generation has just begun
 */
export async function beginNonceGeneration(
  em: Em,
  chainKey: KeyObject,
  actor: string,
  { generationId, partitions }: z.infer<typeof nonceGenerationInput>,
): Promise<NonceGeneration> {
  if (await isRecorded(em, chainKey, generationId))
    return toGeneration(generationId, partitions, await findLatest(em, chainKey))
  await requireInterval(em, await findLatest(em, chainKey))
  // Two gateways may begin at the same time.
  await lockAccess(em)
  const earlier = await findLatest(em, chainKey)
  if (await isRecorded(em, chainKey, generationId)) return toGeneration(generationId, partitions, earlier)
  await requireInterval(em, earlier)
  const recorded = follow(earlier, generationId, partitions)
  const after = { ...recorded, tag: tagOf(chainKey, recorded.number) }
  recordAction(em, { actor, action, workspaceId: null, target: generationId, after })
  return toGeneration(generationId, partitions, recorded)
}

/** The latest generation of each partition that has one. */
export async function findLatestNonceGenerations(em: Em, chainKey: KeyObject): Promise<LatestNonceGenerations> {
  return (await findLatest(em, chainKey))?.latest ?? {}
}

/**
 * What an entry of the audit says. `latest`: the latest generation of each partition, by ID, this one included. `followed`: the
 * partitions that had another generation before.
 */
type Recorded = { number: number; latest: LatestNonceGenerations; followed: number[] }
type FoundGeneration = Recorded & { at: Date }

function follow(earlier: Recorded | null, generationId: string, partitions: readonly number[]): Recorded {
  const latest: LatestNonceGenerations = {}
  const followed = new Set(earlier?.followed)
  for (const [id, members] of Object.entries(earlier?.latest ?? {})) {
    for (const member of members) if (partitions.includes(member)) followed.add(member)
    const rest = members.filter(member => !partitions.includes(member))
    if (rest.length > 0) latest[id] = rest
  }
  latest[generationId] = [...new Set(partitions)]
  return { number: (earlier?.number ?? 0) + 1, latest, followed: [...followed] }
}

function toGeneration(generationId: string, partitions: readonly number[], recorded: Recorded | null): NonceGeneration {
  const latest = (recorded?.latest[generationId] ?? []).filter(partition => partitions.includes(partition))
  return { latest, first: latest.filter(partition => !recorded!.followed.includes(partition)) }
}

async function isRecorded(em: Em, chainKey: KeyObject, generationId: string): Promise<boolean> {
  return (await findBegun(em, chainKey, 'a.target', generationId)) !== null
}

/** @throws DomainError S002 */
async function requireInterval(em: Em, latest: FoundGeneration | null): Promise<void> {
  if (!latest) return
  const sinceMs = (await databaseTime(em)).getTime() - latest.at.getTime()
  // Negative after the clock was set back.
  if (sinceMs >= 0 && sinceMs < minIntervalMs) throw new DomainError('S002', { retryAfterSeconds: 1 })
}

/** The latest generation, found in as many steps as the binary logarithm of its number. */
async function findLatest(em: Em, chainKey: KeyObject): Promise<FoundGeneration | null> {
  let latest: FoundGeneration | null = null
  let missing = 1
  for (let found = await findNumber(em, chainKey, missing); found; found = await findNumber(em, chainKey, missing)) {
    latest = found
    missing *= 2
  }
  while (latest && missing - latest.number > 1) {
    const between = Math.floor((latest.number + missing) / 2)
    const found = await findNumber(em, chainKey, between)
    if (found) latest = found
    else missing = between
  }
  return latest
}

function findNumber(em: Em, chainKey: KeyObject, number: number): Promise<FoundGeneration | null> {
  return findBegun(em, chainKey, "a.after ->> 'tag'", tagOf(chainKey, number))
}

function tagOf(chainKey: KeyObject, number: number): string {
  return createHmac('sha256', chainKey)
    .update(JSON.stringify(['nonce generation', number]))
    .digest('base64url')
}

const entriesPerPage = 100

/** The first genuine entry with this value. */
async function findBegun(em: Em, chainKey: KeyObject, column: string, value: string): Promise<FoundGeneration | null> {
  for (let after = '0'; ; ) {
    const rows = await em.execute<(FoundAction & { id: string })[]>(
      `select a.id::text, ${selectAction}
       from audit a
       where a.workspace_id is null and a.action = '${action}' and ${column} = ? and a.id > ?
       order by a.id limit ${entriesPerPage}`,
      [value, after],
    )
    for (const found of rows) {
      const { action: entry, isGenuine } = readAction(chainKey, found)
      if (isGenuine) return { at: entry.at, ...(JSON.parse(entry.after!) as Recorded) }
    }
    if (rows.length < entriesPerPage) return null
    after = rows.at(-1)!.id
  }
}
