import type { FilterQuery } from '@mikro-orm/core'
import type { RefusalListing, Refusal as RefusalRecord } from '@workspace-wallet/contract'
import { databaseTime } from '../database/clock.ts'
import type { Em } from '../database/orm.ts'
import { Refusal } from './entities.ts'

const keptMs = 7 * 86_400_000

/** A page of the refused calls of the last seven days, newest first. */
export async function listRefusals(
  em: Em,
  before: number | undefined,
  { apiKey, requestId, code, address, limit }: RefusalListing,
): Promise<{ items: RefusalRecord[]; next: number | null }> {
  const since = new Date((await databaseTime(em)).getTime() - keptMs)
  const where: FilterQuery<Refusal> = {
    receivedAt: { $gte: since },
    ...(apiKey !== undefined && { apiKey }),
    ...(requestId !== undefined && { requestId }),
    ...(code !== undefined && { code }),
    ...(address !== undefined && { address }),
    ...(before !== undefined && { id: { $lt: before } }),
  }
  const found = await em.find(Refusal, where, { orderBy: { id: 'desc' }, limit: limit + 1 })
  const items = found.slice(0, limit).map(({ receivedAt: _, apiKey = null, ...refusal }) => ({ ...refusal, apiKey }))
  return { items, next: found.length > limit ? items.at(-1)!.id : null }
}
