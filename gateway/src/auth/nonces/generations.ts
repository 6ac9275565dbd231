import { createHmac } from 'node:crypto'
import { type LatestNonceGenerations, type NonceGeneration, noncePartitionCount } from '@workspace-wallet/contract'
import type { CoreClient } from '@workspace-wallet/core-client'

/** What a nonce store needs from core. Methods throw if core is unavailable. */
export interface Generations {
  /**
   * The key of the nonce store. All gateways have it; whoever has only the Redis user of the gateways or the nonce file does
   * not.
   */
  readKey(): Promise<string>
  /** Records a generation of some partitions, if it is new. */
  begin(generationId: string, partitions: readonly number[]): Promise<NonceGeneration>
  /** The latest generation of each partition. */
  latest(): Promise<LatestNonceGenerations>
}

export const allPartitions: readonly number[] = Array.from({ length: noncePartitionCount }, (_, at) => at)

export function generationsOf(core: CoreClient): Generations {
  let key: string | undefined
  return {
    async readKey() {
      key ??= (await core.access.nonceKey.query()).nonceKey
      return key
    },
    begin: (generationId, partitions) =>
      core.access.beginNonceGeneration.mutate({ generationId, partitions: [...partitions] }),
    latest: () => core.access.latestNonceGenerations.query(),
  }
}

/** Whether one list of partitions includes another one. */
export function includesAll(list: readonly number[] | undefined, partitions: readonly number[]): boolean {
  return list !== undefined && partitions.every(partition => list.includes(partition))
}

/** A text that only holders of the key can compute: 256 bits in base64url. */
export function nonceMac(key: string, text: string): string {
  return createHmac('sha256', key).update(text).digest('base64url')
}
