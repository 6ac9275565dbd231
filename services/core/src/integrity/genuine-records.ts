import type { KeyObject } from 'node:crypto'
import { type CheckedAction, findActionsOfNoWorkspace, type RecordedAction } from '../audit/records.ts'
import type { Queryable } from '../database/statement.ts'

/** How many genuine records are known of a kind. */
const keptRecords = 50
/** Records of one statement: each may have 32 KB if somebody else wrote it. */
const firstPage = 50
const nextPages = 200

/** `newestId`: the number of the newest record of all workspaces that was read, genuine or not. `records`: newest first. */
type Known = { newestId: number; records: readonly CheckedAction[] }

/** What was read last, of each kind, by database. */
const knownOf = new WeakMap<Queryable, Map<RecordedAction, Promise<Known>>>()

/**
 * The newest genuine records of all workspaces of these kinds, newest first, at most 50 of a kind. Records of single workspaces do not
 * count.
 *
 * Whoever has the role of the service can append any number of other records. They hide no genuine one: all pages are read back to what
 * was read before, so only the first read after a start may be a long one. What was read before stays the end, because actions on no
 * workspace are numbered in the order in which they are committed (see lockAudit), and are never removed.
 */
export async function findGenuineRecords(
  { reads, chainKey }: { reads: Queryable; chainKey: KeyObject },
  actions: readonly RecordedAction[],
): Promise<CheckedAction[]> {
  const known = knownOf.get(reads) ?? new Map<RecordedAction, Promise<Known>>()
  knownOf.set(reads, known)
  const found: CheckedAction[] = []
  for (const action of actions) {
    const before = known.get(action) ?? Promise.resolve(nothing)
    // In turn, so that a long first read is made once. After a failure, what was known before is read on.
    const now = before.then(last => readSince(last, reads, chainKey, action))
    known.set(
      action,
      now.catch(() => before),
    )
    found.push(...(await now).records)
  }
  return found.sort((a, b) => b.id - a.id)
}

const nothing: Known = { newestId: 0, records: [] }

async function readSince(
  { newestId, records }: Known,
  reads: Queryable,
  chainKey: KeyObject,
  action: RecordedAction,
): Promise<Known> {
  const found: CheckedAction[] = []
  let newest = newestId
  let before: number | undefined
  for (let limit = firstPage; ; limit = nextPages) {
    const page = await findActionsOfNoWorkspace(reads, chainKey, [action], { before, limit })
    const added = page.filter(({ id }) => id > newestId)
    newest = Math.max(newest, added[0]?.id ?? 0)
    found.push(...added.filter(({ isGenuine }) => isGenuine))
    before = page.at(-1)?.id
    const isKnown = before === undefined || before <= newestId || page.length < limit
    if (isKnown || found.length >= keptRecords) break
  }
  return { newestId: newest, records: [...found, ...records].slice(0, keptRecords) }
}
