import type { KekStatus } from '@workspace-wallet/contract'
import { decryptSecret, type KeyRing, type Log } from '@workspace-wallet/runtime'
import type { Em } from '../database/orm.ts'
import { isGenuine } from '../database/row-signer.ts'
import { allHolders, type SecretHolder, secretsOf } from './secret-holders.ts'

const maxModified = 100

/** Counts rows that were modified or written outside the service, and keeps the first of them. */
class ModifiedRows {
  count = 0
  readonly rows: { id: string; workspaceId: string }[] = []

  add({ id, workspaceId }: SecretHolder): void {
    this.count++
    if (this.rows.length < maxModified) this.rows.push({ id, workspaceId })
  }
}

/** The number of secrets under each key-encryption key. Rows that were modified outside the service do not count. */
export async function findKekStatus(em: Em, keyRing: KeyRing): Promise<KekStatus> {
  const counts = new Map<string, number>()
  const modified = new ModifiedRows()
  for await (const holder of allHolders(em)) {
    if (!isGenuine(holder)) modified.add(holder)
    else for (const { kek } of secretsOf(holder)) counts.set(kek, (counts.get(kek) ?? 0) + 1)
  }
  const keks = [...counts].sort().map(([kek, secrets]) => ({ kek, secrets, onRing: keyRing.keys.has(kek) }))
  return { active: keyRing.activeId, keks, modified: { count: modified.count, rows: modified.rows } }
}

/** The sums of all places. */
export function mergeKekStatuses(statuses: readonly KekStatus[]): KekStatus {
  const keks = new Map<string, KekStatus['keks'][number]>()
  for (const { kek, secrets, onRing } of statuses.flatMap(status => status.keks))
    keks.set(kek, { kek, secrets: secrets + (keks.get(kek)?.secrets ?? 0), onRing })
  return {
    active: statuses[0]!.active,
    keks: [...keks].sort().map(([, kek]) => kek),
    modified: {
      count: statuses.reduce((sum, { modified }) => sum + modified.count, 0),
      rows: statuses.flatMap(({ modified }) => modified.rows).slice(0, maxModified),
    },
  }
}

/** How long a start may take for this: 100,000 forged rows take about seven seconds. Without them, it takes milliseconds. */
const checkMs = 5_000

/**
 * Checks that the key ring decrypts the stored secrets. Gateways have the same ring, and core signs deliveries of webhooks. Rows
 * that were modified outside the service count for nothing, so that nobody can keep cores from starting with forged ones, however many.
 * They are logged.
 *
 * @returns sentences for the operator about keys that are missing or differ
 */
export async function faultsOfKeyRing(em: Em, keyRing: KeyRing, log: Log, limitMs = checkMs): Promise<string[]> {
  const untilMs = performance.now() + limitMs
  /** An object with a secret under each key-encryption key, and whether the ring decrypts a secret under it. */
  const found = new Map<string, { example: string; isReadable: boolean }>()
  const isSettled = (kek: string) => found.has(kek) && (found.get(kek)!.isReadable || !keyRing.keys.has(kek))
  const modified = new ModifiedRows()
  for await (const holder of allHolders(em, () => [...found.keys()].filter(isSettled))) {
    if (isGenuine(holder))
      for (const secret of secretsOf(holder)) {
        // One row may be damaged. If no secret decrypts, the key is wrong.
        const isReadable = found.get(secret.kek)?.isReadable || isDecryptable(keyRing, holder, secret)
        found.set(secret.kek, { example: holder.id, isReadable })
      }
    else modified.add(holder)
    if (modified.count > 0 && performance.now() >= untilMs) {
      log.error('too many rows were modified outside the service: not all secrets were checked at this start')
      break
    }
  }
  if (modified.count > 0)
    log.warn(
      { count: modified.count, rows: modified.rows },
      'rows were modified outside the service: their secrets count for nothing; run ledger verify, and delete them',
    )
  return [...found].flatMap(([kek, { example, isReadable }]) => {
    if (!keyRing.keys.has(kek))
      return `KEY_ENCRYPTION_KEYS lacks ${kek}, which encrypts secrets such as that of ${example}: append that key to the list of core and gateways.`
    if (isReadable) return []
    return `KEY_ENCRYPTION_KEYS has another ${kek} than the one that encrypts secrets such as that of ${example}: give core and gateways the original key.`
  })
}

function isDecryptable(
  keyRing: KeyRing,
  { id, workspaceId }: SecretHolder,
  { secret, version }: { secret: string; version: number },
): boolean {
  try {
    decryptSecret(keyRing, { id, workspaceId, version }, secret)
    return true
  } catch {
    return false
  }
}
