/** `npm run chaos -- --redis KIND`: fails Redis over while clients send requests, and sends each accepted one again. */
import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Credentials } from '@workspace-wallet/client'
import { table } from '../../cli/admin/table.ts'
import type { Redis } from '../../cli/processes/redis.ts'
import { moveSlot, type RedisSet, startRedisCluster, startSentinelSet } from '../../cli/processes/redis-sets.ts'
import { sayWithin } from '../../cli/processes/say.ts'
import { clusterGroups } from '../../gateway/src/auth/nonces/redis/partitions.ts'
import { send } from './call.ts'
import { spreadOf } from './report.ts'
import { startTestbed } from './testbed.ts'

const kinds = ['sentinel', 'cluster'] as const
type Kind = (typeof kinds)[number]

const keyCount = 96
const target = '/api/v1/wallets'
const timeoutMs = 15_000
/** Pause of a client between two requests. */
const restMs = 100
const freezeMs = 8_000
/** Longer than requests are rejected after a loss. */
const recoveryMs = 100_000

const say = sayWithin('chaos')

export function parseRedisKind(text: string): Kind {
  const kind = kinds.find(each => each === text)
  if (!kind) throw new Error(`must be ${kinds.join(' or ')}`)
  return kind
}

type Sent = { nonce: string; timestamp: string }
/** A client with a key of its own. Times are those of `performance.now()`. */
type Client = {
  signer: Credentials
  accepted: Sent[]
  firstRefusedMs: number | null
  lastRefusedMs: number
  servedMs: number
}
type Fault = { fault: string; inject(): Promise<void> }
type Figures = { fault: string; refusedKeys: number; refusedMs: { median: number; worst: number } | null }

export async function runRedisFailover(kind: Kind, json: string | undefined, interrupted: AbortSignal): Promise<void> {
  say(`starting Redis (${kind}), PostgreSQL, two cores, two couriers and two gateways`)
  const set = await (kind === 'sentinel' ? startSentinelSet() : startRedisCluster())
  const testbed = await startTestbed(interrupted, 'single', { redisUrl: set.url })
  const load = new Load(testbed.gatewayUrls)
  try {
    await load.start(testbed.admin)
    await load.untilServed(0, interrupted)
    const figures: Figures[] = []
    for (const { fault, inject } of faultsOf(kind, set)) {
      const startedAtMs = performance.now()
      await inject()
      await load.untilServed(startedAtMs, interrupted)
      const refused = load.refusedSince(startedAtMs)
      figures.push({
        fault,
        refusedKeys: refused.length,
        refusedMs: refused.length > 0 ? spreadOf(refused) : null,
      })
      say(`${fault}: ${refused.length} of ${keyCount} keys were rejected`)
    }
    await load.stop()
    const report = {
      redis: kind,
      keys: keyCount,
      faults: figures,
      accepted: load.accepted,
      sentAgain: load.sentAgain,
      acceptedTwice: load.acceptedTwice.length,
      otherCodes: load.otherCodes,
    }
    if (json) await writeFile(json, `${JSON.stringify(report, null, 2)}\n`)
    const seconds = (milliseconds: number | undefined) =>
      milliseconds === undefined ? '' : (milliseconds / 1000).toFixed(1)
    const rows = figures.map(({ fault, refusedKeys, refusedMs }) => [
      fault,
      `${refusedKeys} of ${keyCount}`,
      seconds(refusedMs?.median),
      seconds(refusedMs?.worst),
    ])
    console.log(table(['fault', 'rejected keys', 'seconds, median', 'worst'], rows))
    console.log(
      `${load.accepted} requests were accepted, and sent again ${load.sentAgain} times: ${load.acceptedTwice.length} were accepted twice.`,
    )
    if (load.acceptedTwice.length > 0 || Object.keys(load.otherCodes).length > 0) process.exitCode = 1
  } finally {
    await load.stop()
    await testbed.stop(process.exitCode === 1)
    await set.stop()
  }
}

function faultsOf(kind: Kind, set: RedisSet): Fault[] {
  const primaryAt = async (at: number) => (await set.primaries())[at]!
  const untilReplaced = async (former: Redis) => {
    const deadlineMs = performance.now() + recoveryMs
    while ((await set.primaries()).includes(former)) {
      if (performance.now() > deadlineMs) throw new Error(`no replica replaced a primary within ${recoveryMs / 1000} s`)
      await sleep(100)
    }
  }
  const faults: Fault[] = [
    {
      fault: 'kill a replica',
      async inject() {
        const primaries = await set.primaries()
        const replica = set.nodes.find(node => !primaries.includes(node))!
        await replica.kill()
        await replica.restart()
      },
    },
    {
      fault: 'kill a primary',
      async inject() {
        const primary = await primaryAt(0)
        await primary.kill()
        await untilReplaced(primary)
        await primary.restart()
      },
    },
    {
      fault: 'restart a primary at once',
      async inject() {
        const primary = await primaryAt(0)
        await primary.restart()
      },
    },
    {
      fault: `freeze a primary for ${freezeMs / 1000} s`,
      async inject() {
        const primary = await primaryAt(0)
        primary.freeze()
        await sleep(freezeMs)
        primary.thaw()
      },
    },
  ]
  if (kind === 'cluster')
    faults.push({
      fault: 'move a hash slot',
      async inject() {
        const primaries = await set.primaries()
        await moveSlot(clusterGroups[0]!.slot, primaries[0]!, primaries[1]!)
      },
    })
  return faults
}

class Load {
  accepted = 0
  sentAgain = 0
  readonly acceptedTwice: Sent[] = []
  /** Codes that no fault of Redis explains. */
  readonly otherCodes: Record<string, number> = {}
  readonly #gatewayUrls: string[]
  readonly #clients: Client[] = []
  #running: Promise<void>[] = []
  #isRunning = true

  constructor(gatewayUrls: string[]) {
    this.#gatewayUrls = gatewayUrls
  }

  async start(admin: Awaited<ReturnType<typeof startTestbed>>['admin']): Promise<void> {
    const { workspaceId } = await admin.workspaces.create.mutate({ name: 'Chaos' })
    await admin.members.add.mutate({ workspaceId, userId: 'chaos' })
    for (let count = 0; count < keyCount; count++) {
      const signer = await admin.apiKeys.create.mutate({ workspaceId, ownerUserId: 'chaos', scopes: ['wallet:read'] })
      this.#clients.push({ signer, accepted: [], firstRefusedMs: null, lastRefusedMs: 0, servedMs: 0 })
    }
    this.#running = this.#clients.map((client, at) => this.#run(client, at))
  }

  async stop(): Promise<void> {
    this.#isRunning = false
    await Promise.all(this.#running)
  }

  /** Waits until every key was served after its last rejection, and after a time. */
  async untilServed(sinceMs: number, interrupted: AbortSignal): Promise<void> {
    const deadlineMs = performance.now() + recoveryMs
    // A failover that gateways have not noticed yet.
    await sleep(5_000)
    const isServed = ({ servedMs, lastRefusedMs }: Client) =>
      servedMs > Math.max(sinceMs, lastRefusedMs) && performance.now() - lastRefusedMs > 3_000
    while (!this.#clients.every(isServed)) {
      interrupted.throwIfAborted()
      if (performance.now() > deadlineMs) throw new Error(`a key was not served within ${recoveryMs / 1000} s`)
      await sleep(50)
    }
  }

  /** For how long each key was rejected, of those that were. */
  refusedSince(sinceMs: number): number[] {
    return this.#clients.flatMap(client => {
      const { firstRefusedMs, lastRefusedMs } = client
      client.firstRefusedMs = null
      // A request that was sent before the fault may have been rejected because of it.
      return firstRefusedMs !== null && lastRefusedMs >= sinceMs
        ? [lastRefusedMs - Math.max(firstRefusedMs, sinceMs)]
        : []
    })
  }

  async #run(client: Client, at: number): Promise<void> {
    for (let count = at; this.#isRunning; count++) {
      const sent = { nonce: randomUUID(), timestamp: String(Math.floor(Date.now() / 1000)) }
      const startedAtMs = performance.now()
      const code = await this.#send(client, sent, count)
      if (code === '2000') {
        this.accepted++
        client.servedMs = performance.now()
        client.accepted.push(sent)
      } else {
        client.firstRefusedMs ??= startedAtMs
        client.lastRefusedMs = performance.now()
      }
      await this.#sendAgain(client, count)
      await sleep(restMs)
    }
  }

  /** Sends an accepted request again that is in the window: the last one or an earlier one. */
  async #sendAgain(client: Client, count: number): Promise<void> {
    const oldest = Math.floor(Date.now() / 1000) - 60
    client.accepted = client.accepted.filter(({ timestamp }) => Number(timestamp) >= oldest)
    const at = count % 2 ? client.accepted.length - 1 : Math.floor(Math.random() * client.accepted.length)
    const sent = client.accepted[at]
    if (!sent) return
    this.sentAgain++
    if ((await this.#send(client, sent, count + 1)) === '2000') this.acceptedTwice.push(sent)
  }

  async #send({ signer }: Client, sent: Sent, count: number): Promise<string> {
    const url = this.#gatewayUrls[count % this.#gatewayUrls.length]!
    const answer = await send(signer, url, 'GET', target, timeoutMs, undefined, sent)
    const code = answer.kind === 'answer' ? answer.code : answer.kind
    if (!['2000', 'S002', 'GA2013'].includes(code)) this.otherCodes[code] = (this.otherCodes[code] ?? 0) + 1
    return code
  }
}
