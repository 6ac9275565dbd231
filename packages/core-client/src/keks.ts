import type { KekStatusStep } from '@workspace-wallet/contract'

/** The call that `readKekStatus` makes. */
type KekCalls = { keks: { status: { query: (input: { after?: string | undefined }) => Promise<KekStatusStep> } } }

/** How many secrets of API keys and webhooks each key-encryption key (KEK) encrypts. */
export type KekStatus = {
  /** The first KEK of all cores, which encrypts new secrets. */
  active: string
  /** `onRing`: whether all cores that were asked have the KEK. */
  keks: KekStatusStep['keks']
  /** API keys and webhooks whose rows were modified outside the service: how many, and the first hundred. Their secrets do not count. */
  modified: { count: number; rows: KekStatusStep['modified'] }
}

const maxNamed = 100

/**
 * Counts in steps: many objects, or rows that were written outside the service, take longer than one call may.
 *
 * @param onProgress called with the number of objects that were read
 * @throws TRPCClientError core's error; Error if two cores encrypt new secrets under different KEKs
 */
export async function readKekStatus(core: KekCalls, onProgress?: (objects: number) => void): Promise<KekStatus> {
  const keks = new Map<string, KekStatus['keks'][number]>()
  const modified: KekStatus['modified'] = { count: 0, rows: [] }
  let objects = 0
  let step: KekStatusStep | undefined
  do {
    const before = step
    step = await core.keks.status.query({ after: before?.next ?? undefined })
    if (before && before.active !== step.active)
      throw new Error(
        `The first key-encryption key of one core is ${before.active}, that of another core is ${step.active}: give all cores the same KEY_ENCRYPTION_KEYS.`,
      )
    for (const { kek, secrets, onRing } of step.keks) {
      const sum = keks.get(kek) ?? { secrets: 0, onRing: true }
      keks.set(kek, { kek, secrets: sum.secrets + secrets, onRing: sum.onRing && onRing })
    }
    modified.count += step.modified.length
    modified.rows.push(...step.modified.slice(0, maxNamed - modified.rows.length))
    objects += step.objects
    onProgress?.(objects)
  } while (step.next !== null)
  return { active: step.active, keks: [...keks.values()].toSorted((a, b) => (a.kek < b.kek ? -1 : 1)), modified }
}
