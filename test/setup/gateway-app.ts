/** A gateway inside the test's own process, whose clocks the test controls. */
import { createServer } from 'node:http'
import { createCoreClient } from '@workspace-wallet/core-client'
import { BodyMemory, BodyReader, createLog, parseKeyRing, SampledLog } from '@workspace-wallet/runtime'
import { inject } from 'vitest'
import { KeyCache } from '../../gateway/src/auth/keys/key-cache.ts'
import { ConcurrencyLimit } from '../../gateway/src/auth/limits/concurrency-limit.ts'
import { MistakeSearch } from '../../gateway/src/auth/mistake-search.ts'
import { generationsOf } from '../../gateway/src/auth/nonces/generations.ts'
import { openRedisNonces } from '../../gateway/src/auth/nonces/redis/store.ts'
import { parseRedisUrl } from '../../gateway/src/auth/nonces/redis/url.ts'
import { createApp } from '../../gateway/src/http/app.ts'
import { RequestSpans } from '../../gateway/src/http/request-spans.ts'
import { ResponseMemory } from '../../gateway/src/http/response-memory.ts'
import { createMetrics } from '../../gateway/src/internal/metrics.ts'
import { Denials } from '../../gateway/src/observability/denials.ts'
import { Refusals } from '../../gateway/src/observability/refusals.ts'
import { listen } from './listen.ts'
import type { System } from './system.ts'
import { until } from './until.ts'

type Options = {
  /** KEY_ENCRYPTION_KEYS of the system. */
  keyEncryptionKeys: string
  now?: () => number
  /** The clock that measures how long cached keys are used. */
  elapsedMs?: () => number
}

export type GatewayApp = { baseUrl: string; keys: KeyCache; close(): Promise<void> }

export async function startGatewayApp(
  system: Pick<System, 'coreUrl' | 'gatewayToken'>,
  { keyEncryptionKeys, now = Date.now, elapsedMs }: Options,
): Promise<GatewayApp> {
  const { log } = createLog('gateway', 'silent')
  const core = createCoreClient({ url: system.coreUrl, token: system.gatewayToken })
  const keys = new KeyCache(core, parseKeyRing(keyEncryptionKeys), log, elapsedMs)
  const limits = { key: undefined, failures: undefined }
  const nonces = await openRedisNonces(parseRedisUrl(inject('redisUrl')), generationsOf(core), limits, log)
  const metrics = createMetrics()
  const sampled = new SampledLog(log)
  const denials = new Denials(metrics.registry, sampled)
  const refusals = new Refusals(core, metrics.registry, log)
  const dependencies = {
    keys,
    nonces,
    mistakes: new MistakeSearch(),
    bodies: new BodyReader({ memory: new BodyMemory(4 * 2 ** 20), deadlineMs: 10_000 }),
    bodyLimitBytes: 65_536,
    concurrency: new ConcurrencyLimit(2048),
    trustedProxies: [],
    now,
    denials,
    refusals,
    spans: new RequestSpans(0),
    log,
    sampled,
  }
  const server = createServer(
    createApp(dependencies, core, new ResponseMemory(4 * 2 ** 20), metrics, async () => ({
      status: (await nonces.fault()) === null ? 'ready' : 'not ready',
      parts: {},
    })),
  )
  keys.start()
  refusals.start()
  const baseUrl = `http://127.0.0.1:${await listen(server)}`
  await until('the gateway is ready', async () => (await fetch(`${baseUrl}/readyz`)).ok)
  return {
    baseUrl,
    keys,
    async close() {
      server.close()
      server.closeAllConnections()
      keys.close()
      sampled.flush()
      await refusals.close()
      await nonces.close()
      await core.close()
    },
  }
}
