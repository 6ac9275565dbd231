import { noncePartitionCount } from '@workspace-wallet/contract'
import { hashText } from '@workspace-wallet/runtime'
import { allPartitions } from '../generations.ts'

/** Partitions of the API keys that share a generation. In Redis Cluster, their keys begin with `tag`, a hash tag. */
export type PartitionGroup = { tag: string; partitions: readonly number[] }

/** The only group of a store with one primary. */
export const wholeStore: PartitionGroup = { tag: '', partitions: allPartitions }

const slotCount = 16_384
const slotsPerPartition = slotCount / noncePartitionCount

/** In Redis Cluster, each partition is a group in a hash slot of its own. The slots are evenly spread, as those of shards are. */
export const clusterGroups: readonly (PartitionGroup & { slot: number })[] = allPartitions.map(partition => {
  for (let number = 0; ; number++) {
    const slot = slotOf(String(number))
    if (Math.floor(slot / slotsPerPartition) === partition)
      return { tag: `{${number}}:`, partitions: [partition], slot }
  }
})

/** The partition of an API key, or of an address whose failures are counted. */
export function partitionOf(text: string): number {
  return hashText(text) % noncePartitionCount
}

/** The hash slot of a hash tag in Redis Cluster: CRC-16/XMODEM. */
function slotOf(tag: string): number {
  let crc = 0
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
    crc &= 0xffff
  }
  return crc % slotCount
}
