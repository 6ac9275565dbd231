import { idFromUuid, type KekStatus } from '@workspace-wallet/contract'
import { decryptSecret, type KeyRing } from '@workspace-wallet/runtime'
import { type Queryable, run, statement } from '../database/statement.ts'

/** The objects that have secrets, and their tables. */
export const tables = { apiKey: 'api_key', webhook: 'webhook' } as const
export type SecretKind = keyof typeof tables

/**
 * SQL: all encrypted secrets, each with the ID of its key-encryption key, which is the second part of its text
 * (packages/runtime/src/secrets.ts).
 */
const encrypted = Object.entries(tables)
  .flatMap(([kind, table]) => [
    `select '${kind}' as kind, id, workspace_id, secret_version as version, secret, split_part(secret, '.', 2) as kek
     from ${table} where secret <> ''`,
    `select '${kind}', id, workspace_id, secret_version - 1, previous_secret, split_part(previous_secret, '.', 2)
     from ${table} where previous_secret is not null`,
  ])
  .join(' union all ')

const countByKekStatement = statement<{ kek: string; secrets: number }>(
  'count-secrets-by-kek',
  `select kek, count(*) as secrets from (${encrypted}) encrypted group by kek order by kek`,
)

/** The number of secrets under each key-encryption key. */
export async function findKekStatus(db: Queryable, keyRing: KeyRing): Promise<KekStatus> {
  const counts = await run(db, countByKekStatement, [])
  return {
    active: keyRing.activeId,
    keks: counts.map(({ kek, secrets }) => ({ kek, secrets, onRing: keyRing.keys.has(kek) })),
  }
}

type Sample = {
  kek: string
  secrets: number
  kind: SecretKind
  id: string
  workspaceId: string
  version: number
  secret: string
}

const sampleStatement = statement<Sample>(
  'sample-secrets',
  `select kek, secrets, kind, id, workspace_id as "workspaceId", version, secret
   from (select *, count(*) over (partition by kek) as secrets,
           row_number() over (partition by kek order by id, version) as place from (${encrypted}) encrypted) numbered
   where place <= 3`,
)

/**
 * Checks that the key ring decrypts the stored secrets. Gateways have the same ring, and core signs deliveries of webhooks.
 *
 * @returns a sentence for the operator if a key is missing or differs; otherwise null
 */
export async function faultOfKeyRing(db: Queryable, keyRing: KeyRing): Promise<string | null> {
  for (const [kek, samples] of Map.groupBy(await run(db, sampleStatement, []), sample => sample.kek)) {
    const secrets = `${samples[0]!.secrets} secret(s) of API keys and webhooks`
    if (!keyRing.keys.has(kek))
      return `KEY_ENCRYPTION_KEYS lacks ${kek}, which encrypts ${secrets}: append that key to the list of core and gateways.`
    // One row may be damaged. If no sample decrypts, the key is wrong.
    if (!samples.some(sample => isDecryptable(keyRing, sample)))
      return `KEY_ENCRYPTION_KEYS has another ${kek} than the one that encrypts ${secrets}: give core and gateways the original key.`
  }
  return null
}

function isDecryptable(keyRing: KeyRing, { kind, id, workspaceId, version, secret }: Sample): boolean {
  const owner = { id: idFromUuid(kind, id), workspaceId: idFromUuid('workspace', workspaceId), version }
  try {
    decryptSecret(keyRing, owner, secret)
    return true
  } catch {
    return false
  }
}
