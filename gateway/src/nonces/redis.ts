import { createClient } from 'redis'
import type { Log } from '../log.ts'
import { type NonceStore, nonceLifeMs } from './store.ts'

/** Redis answers in well under a millisecond; one that takes this long is frozen or gone. */
const deadlineMs = 700

/** Nonces in Redis, shared by all gateways. One round trip each. */
export function openRedisNonces(url: string, log: Log): NonceStore {
  const client = createClient({
    url,
    // Without a connection a command fails at once, instead of waiting for one.
    disableOfflineQueue: true,
    socket: { connectTimeout: 1_000, reconnectStrategy: attempts => Math.min(50 * 2 ** attempts, 1_000) },
    pingInterval: 5_000,
    // Its own deadline is a timer and a signal for each command; ours is below.
    commandOptions: { timeout: 0 },
  })
  const deadline = new Deadline(deadlineMs)
  client.on('error', error => log.warn({ err: error }, 'Redis'))
  // Never settles while Redis is down: the client goes on trying by itself.
  client.connect().catch(error => log.error({ err: error }, 'Redis'))

  return {
    async claim(apiKey, nonce) {
      const set = client.set(keyOf(apiKey, nonce), '', {
        condition: 'NX',
        expiration: { type: 'PX', value: nonceLifeMs },
      })
      return (await deadline.inTime(set)) === 'OK'
    },
    async isUsed(apiKey, nonce) {
      return (await deadline.inTime(client.exists(keyOf(apiKey, nonce)))) === 1
    },
    async isReachable() {
      return deadline.inTime(client.ping()).then(
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

/**
 * Gives up on answers that are late. All wait equally long, so the oldest stands first and one slow timer watches
 * them: a timer for each would cost more than the command.
 */
class Deadline {
  readonly #deadlineMs: number
  readonly #pending = new Set<{ sinceMs: number; reject: (error: Error) => void }>()
  #timer: NodeJS.Timeout | undefined

  constructor(deadlineMs: number) {
    this.#deadlineMs = deadlineMs
  }

  inTime<Answer>(answer: Promise<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const entry = { sinceMs: performance.now(), reject }
      this.#pending.add(entry)
      this.#timer ??= setInterval(() => this.#giveUp(), this.#deadlineMs / 8)
      const settle = () => this.#pending.delete(entry)
      answer.then(
        value => {
          settle()
          resolve(value)
        },
        error => {
          settle()
          reject(error)
        },
      )
    })
  }

  #giveUp(): void {
    const nowMs = performance.now()
    for (const entry of this.#pending) {
      if (nowMs - entry.sinceMs < this.#deadlineMs) return
      this.#pending.delete(entry)
      entry.reject(new Error('Redis did not answer in time'))
    }
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
