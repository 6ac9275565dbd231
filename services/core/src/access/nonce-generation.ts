import { createHmac, type KeyObject } from 'node:crypto'
import { type AuditAction, DomainError, type NonceGeneration } from '@workspace-wallet/contract'
import { type FoundAction, readAction, selectAction } from '../audit/chain.ts'
import { recordAction } from '../audit/record.ts'
import { databaseTime } from '../database/clock.ts'
import type { Em } from '../database/orm.ts'
import { lockAccessRevision } from './revision.ts'

const action = 'nonces.begin' satisfies AuditAction
/** How long after a generation began another one can begin: whoever has the token of a gateway cannot fill the audit log. */
const minIntervalMs = 1_000

/**
 * Records a generation of the nonce store, if it is not recorded yet. Gateways accept requests only in a recorded
 * generation, so none has been accepted before the first one.
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
  generationId: string,
): Promise<NonceGeneration> {
  const recorded = await findRecorded(em, chainKey, generationId)
  if (recorded) return recorded
  await requireInterval(em, await findLatest(em, chainKey))
  // Two gateways may begin at the same time.
  await lockAccessRevision(em)
  const recordedMeanwhile = await findRecorded(em, chainKey, generationId)
  if (recordedMeanwhile) return recordedMeanwhile
  const latest = await findLatest(em, chainKey)
  await requireInterval(em, latest)
  const number = (latest?.number ?? 0) + 1
  recordAction(em, {
    actor,
    action,
    workspaceId: null,
    target: generationId,
    after: { number, tag: tagOf(chainKey, number) },
  })
  return { isFirst: number === 1, isLatest: true }
}

type Generation = { number: number; at: Date }

/** Whether a generation is the first and the latest one; null if it is not recorded. */
async function findRecorded(em: Em, chainKey: KeyObject, generationId: string): Promise<NonceGeneration | null> {
  const recorded = await findBegun(em, chainKey, 'a.target', generationId)
  if (!recorded) return null
  const { number } = recorded
  return { isFirst: number === 1, isLatest: (await findNumber(em, chainKey, number + 1)) === null }
}

/** @throws DomainError S002 */
async function requireInterval(em: Em, latest: Generation | null): Promise<void> {
  if (!latest) return
  const sinceMs = (await databaseTime(em)).getTime() - latest.at.getTime()
  // Negative after the clock was set back.
  if (sinceMs >= 0 && sinceMs < minIntervalMs) throw new DomainError('S002', { retryAfterSeconds: 1 })
}

/** The latest generation, found in as many steps as the binary logarithm of its number. */
async function findLatest(em: Em, chainKey: KeyObject): Promise<Generation | null> {
  let latest: Generation | null = null
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

function findNumber(em: Em, chainKey: KeyObject, number: number): Promise<Generation | null> {
  return findBegun(em, chainKey, "a.after ->> 'tag'", tagOf(chainKey, number))
}

function tagOf(chainKey: KeyObject, number: number): string {
  return createHmac('sha256', chainKey)
    .update(JSON.stringify(['nonce generation', number]))
    .digest('base64url')
}

const entriesPerPage = 100

/** The first genuine entry with this value. */
async function findBegun(em: Em, chainKey: KeyObject, column: string, value: string): Promise<Generation | null> {
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
      if (isGenuine) return { at: entry.at, number: JSON.parse(entry.after!).number }
    }
    if (rows.length < entriesPerPage) return null
    after = rows.at(-1)!.id
  }
}
