import type { KekStatusStep } from '@workspace-wallet/contract'
import { decryptSecret, type KeyRing, type Log } from '@workspace-wallet/runtime'
import type { Em } from '../database/orm.ts'
import { isGenuine } from '../database/row-signer.ts'
import { findHolders, pagesOfHolders, type SecretHolder, secretsOf } from './secret-holders.ts'

/** Few, because the objects of a step are loaded in one turn of the event loop. */
const objectsPerStep = 100

/**
 * Counts the secrets under each key-encryption key, in one step. Rows that were modified outside the service do not count.
 *
 * @param after the last object of the previous step
 * @throws DomainError S012 if `after` is no ID of an API key or webhook
 */
export async function findKekStatus(em: Em, keyRing: KeyRing, after: string | undefined): Promise<KekStatusStep> {
  const { holders, next } = await findHolders(em, { after, except: [], limit: objectsPerStep })
  const [genuine, modified] = [holders.filter(isGenuine), holders.filter(holder => !isGenuine(holder))]
  const secrets = Map.groupBy(genuine.flatMap(secretsOf), ({ kek }) => kek)
  return {
    active: keyRing.activeId,
    keks: [...secrets].map(([kek, { length }]) => ({ kek, secrets: length, onRing: keyRing.keys.has(kek) })),
    modified: modified.map(({ id, workspaceId }) => ({ id, workspaceId })),
    objects: holders.length,
    next,
  }
}

/** Rows that a start names in the log. */
const maxNamed = 100

/** How long a start may take for this: whoever has the role of the service can write any number of rows. */
const checkMs = 5_000

/**
 * Checks that the key ring decrypts the stored secrets. Gateways have the same ring, and core signs deliveries of webhooks. Rows
 * that were modified outside the service are ignored, so that nobody can keep cores from starting with forged ones, however many.
 * They are logged.
 *
 * @returns sentences for the operator about keys that are missing or differ
 */
export async function faultsOfKeyRing(em: Em, keyRing: KeyRing, log: Log, limitMs = checkMs): Promise<string[]> {
  const untilMs = performance.now() + limitMs
  /** An object with a secret under each key-encryption key, and whether the ring decrypts a secret under it. */
  const found = new Map<string, { example: string; isReadable: boolean }>()
  const isSettled = (kek: string) => found.has(kek) && (found.get(kek)!.isReadable || !keyRing.keys.has(kek))
  const named: { id: string; workspaceId: string }[] = []
  let modified = 0
  for await (const holders of pagesOfHolders(em, () => [...found.keys()].filter(isSettled))) {
    if (performance.now() >= untilMs) {
      log.warn('not all secrets were checked at this start: reading all API keys and webhooks takes too long')
      break
    }
    for (const holder of holders) {
      const { id, workspaceId } = holder
      if (isGenuine(holder))
        for (const secret of secretsOf(holder)) {
          // One row may be damaged. If no secret decrypts, the key is wrong.
          const isReadable = found.get(secret.kek)?.isReadable || isDecryptable(keyRing, holder, secret)
          found.set(secret.kek, { example: id, isReadable })
        }
      else if (++modified <= maxNamed) named.push({ id, workspaceId })
    }
  }
  if (modified > 0)
    log.warn(
      { count: modified, rows: named },
      'rows were modified outside the service: their secrets are ignored; run ledger verify, and delete them',
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
