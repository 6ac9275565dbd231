/** Accounts for what clients have sent: whether the service did what it acknowledged, once, and nothing else. */
import { setTimeout as sleep } from 'node:timers/promises'
import { inParallel } from '../../cli/processes/in-parallel.ts'
import { nameOf } from './commands.ts'
import type { Deliveries } from './deliveries.ts'
import {
  type Balance,
  type Discrepancies,
  type Found,
  type ListedHold,
  type ListedOrder,
  reconcile,
} from './reconcile.ts'
import type { Tail } from './tail.ts'
import type { Testbed } from './testbed.ts'
import { idsOf, type Sent, type Tenant, type Traffic } from './traffic.ts'

const pageSize = 100
/** Longer than short holds last. */
const shortHoldMs = 3_500
/** Requests at a time when outcomes are resolved and orders are read. */
const resolvers = 8

/** Resolves all unknown outcomes, and compares orders, holds, balances and event logs with the answers. Call it after the clients have stopped. */
export async function accountFor(
  testbed: Testbed,
  traffic: Traffic,
  tails: readonly Tail[],
  deliveries?: Deliveries,
): Promise<{ found: Discrepancies; resolved: { wereDone: number; wereNotDone: number } }> {
  const discrepancies: Discrepancies = { lost: [], duplicated: [], unexplained: [] }
  const unknown = traffic.sent.filter(({ state }) => state === 'unknown')
  const resolved = await resolve(traffic, unknown, discrepancies)
  for (const tail of tails) {
    const { tenant } = tail
    const found = await findAll(traffic, tenant)
    await tail.stop(found.orders)
    discrepancies.unexplained.push(...tail.unexplained, ...((await deliveries?.compare(tenant, tail.eventIds)) ?? []))
    const each = reconcile(
      tenant,
      traffic.sent.filter(sent => sent.tenant === tenant),
      found,
    )
    for (const name of ['lost', 'duplicated', 'unexplained'] as const) discrepancies[name].push(...each[name])
  }
  discrepancies.unexplained.push(...traffic.unexplained, ...(await remainingPostings(testbed)))
  return { found: discrepancies, resolved }
}

/** Resolves unknown outcomes: looks each up, then retries it, which must return the same records or make them. */
async function resolve(traffic: Traffic, unknown: Sent[], discrepancies: Discrepancies) {
  const resolved = { wereDone: 0, wereNotDone: 0 }
  await inParallel(resolvers, unknown, async sent => {
    const { command, signer } = sent
    const { target, absent } = command.lookUp
    const found = await traffic.settle(signer, 'GET', target)
    const again = await traffic.settle(signer, 'POST', command.path, command.body)
    const [first, second] = [found, again].map(answer => (answer.kind === 'answer' ? answer.code : answer.kind))
    const isOpen = found.kind === 'answer' && command.holdChange?.kind === 'release' && found.data?.status === 'OPEN'
    const wasDone = first === '2000' && !isOpen
    if (wasDone) resolved.wereDone++
    else resolved.wereNotDone++
    if (sent.isExcessive && first === absent && second === 'T002') {
      sent.state = 'refused'
    } else if ((first === '2000' || first === absent) && again.kind === 'answer' && second === '2000') {
      sent.state = 'acknowledged'
      sent.ids = idsOf(again.data)
      const [id] = found.kind === 'answer' && first === '2000' ? idsOf(found.data) : sent.ids
      if (id !== sent.ids[0])
        discrepancies.duplicated.push(`${nameOf(command)} was ${id} and after a retry ${sent.ids[0]}`)
    } else {
      discrepancies.unexplained.push(
        `${nameOf(command)} cannot be resolved: the look-up returned ${first}, the retry ${second}`,
      )
    }
  })
  return resolved
}

async function findAll(traffic: Traffic, { signers, wallets, empty }: Tenant): Promise<Found> {
  const read = async <Data>(target: string) => {
    const answer = await traffic.settle(signers[0]!, 'GET', target)
    if (answer.kind !== 'answer' || answer.code !== '2000') throw new Error(`${target}: ${JSON.stringify(answer)}`)
    return answer.data as Data
  }
  /** All entries of a list, oldest first. */
  const readAll = async <Entry>(path: string): Promise<Entry[]> => {
    const pageAt = (page: number) =>
      read<{ content: Entry[]; page: { totalPages: number } }>(`${path}?size=${pageSize}&page=${page}`)
    const { page } = await pageAt(0)
    const pages = new Array<Entry[]>(page.totalPages)
    await inParallel(resolvers, [...pages.keys()], async number => {
      pages[number] = (await pageAt(number)).content
    })
    return pages.flat().toReversed()
  }
  // By now, the last short hold expires in three seconds.
  await sleep(shortHoldMs)
  const balances = new Map<string, Balance>()
  for (const { walletId } of [...wallets, empty])
    balances.set(walletId, await read<Balance>(`/api/v1/wallets/${walletId}/balance`))
  return {
    orders: await readAll<ListedOrder>('/api/v1/transfer/query/orders'),
    holds: await readAll<ListedHold>('/api/v1/hold/query/holds'),
    balances,
  }
}

/** Reports postings that a core still counts after all clients have stopped. */
async function remainingPostings({ coreUrls }: Testbed): Promise<string[]> {
  const found: string[] = []
  for (const url of coreUrls) {
    const text = await (await fetch(`${url}/metrics`)).text()
    const counts = [...text.matchAll(/^core_postings\{(?:place="[^"]*",)?state="(\w+)"\} (\d+)$/gm)]
    if (counts.length === 0) found.push(`${url}/metrics has no core_postings`)
    for (const [, state, count] of counts) if (count !== '0') found.push(`${url} still has ${count} ${state} postings`)
  }
  return found
}
