import { instanceKinds, instanceSilentSeconds, type Instance as ListedInstance } from '@workspace-wallet/contract'
import type { Em } from '../database/orm.ts'
import { Instance } from './entities.ts'

/** More than run. Who has the role of the service can store more. */
const listLimit = 500

/** The instances that were seen last, in the order of kinds and names. @param now the time of PostgreSQL */
export async function listInstances(em: Em, now: Date): Promise<ListedInstance[]> {
  const silentMs = instanceSilentSeconds * 1000
  const notLater = new Date(now.getTime() + silentMs)
  const found = await em.find(
    Instance,
    { seenAt: { $lte: notLater } },
    { orderBy: { seenAt: 'desc', id: 'asc' }, limit: listLimit },
  )
  return found
    .map(({ id, fault = null, ...instance }) => ({
      ...instance,
      instanceId: id,
      fault,
      isRunning: now.getTime() - instance.seenAt.getTime() < silentMs,
    }))
    .toSorted((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1))
}

function placeOf({ kind, name, host, startedAt, instanceId }: ListedInstance): string {
  return [instanceKinds.indexOf(kind), name, host, startedAt.toISOString(), instanceId].join('\u0000')
}
