import { createClient } from 'redis'
import type { Log } from '../log.ts'
import { type NonceStore, nonceLifeMs } from './store.ts'

/** Redis answers in well under a millisecond; one that takes this long is frozen or gone. */
const deadlineMs = 800

/** Nonces in Redis, shared by all gateways. One round trip each. */
export function openRedisNonces(url: string, log: Log): NonceStore {
  const client = createClient({
    url,
    // Without a connection a command fails at once, instead of waiting for one.
    disableOfflineQueue: true,
    socket: { connectTimeout: 1_000, reconnectStrategy: attempts => Math.min(50 * 2 ** attempts, 1_000) },
    pingInterval: 5_000,
  })
  client.on('error', error => log.warn({ err: error }, 'Redis'))
  // Never settles while Redis is down: the client goes on trying by itself.
  client.connect().catch(error => log.error({ err: error }, 'Redis'))

  return {
    async claim(apiKey, nonce) {
      const set = client.set(keyOf(apiKey, nonce), '', {
        condition: 'NX',
        expiration: { type: 'PX', value: nonceLifeMs },
      })
      return (await inTime(set)) === 'OK'
    },
    async isUsed(apiKey, nonce) {
      return (await inTime(client.exists(keyOf(apiKey, nonce)))) === 1
    },
    async isReachable() {
      return inTime(client.ping()).then(
        () => true,
        () => false,
      )
    },
    async close() {
      client.destroy()
    },
  }
}

function keyOf(apiKey: string, nonce: string): string {
  return `nonce:${apiKey}:${nonce}`
}

async function inTime<Answer>(answer: Promise<Answer>): Promise<Answer> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('Redis did not answer in time')), deadlineMs)
  })
  try {
    return await Promise.race([answer, late])
  } finally {
    clearTimeout(timer)
  }
}
