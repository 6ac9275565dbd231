import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { DomainError, isDomainError } from '@workspace-wallet/contract'
import { Availability, errorSummary, type Log } from '@workspace-wallet/runtime'
import { Buckets } from '../limits/buckets.ts'
import type { Limits } from '../limits/rate.ts'
import { Deadline } from './deadline.ts'
import { allPartitions, type Generations, includesAll } from './generations.ts'
import type { FileAnswer, FileResult, Generation, NonceFileOptions, NonceQuery } from './nonce-file.ts'
import type { ThreadAnswer, ThreadRequest } from './nonce-file-thread.ts'
import { checkFence, fenceOf, type NonceStore } from './store.ts'

/** A disk takes milliseconds. One that takes this long hangs. */
const deadlineMs = 700
const queriesPerBatch = 200
/** Queries that may wait for a disk that hangs. */
const waitingLimit = 10_000
/** How long the start waits for the thread and its file. After that, the gateway listens, but is not ready. */
const startMs = 5_000
/** How often an unusable file is tried again without requests. */
const retryMs = 1_000

type PendingQuery = {
  query: NonceQuery
  /** Of the request; a probe has none. */
  timestamp: number | undefined
  resolve: (result: FileResult) => void
  reject: (error: unknown) => void
}

/**
 * A nonce store for a single gateway, in embedded mode: an SQLite file (see nonce-file.ts) that a worker thread reads and
 * writes. Queries that arrive while a batch is being written form the next one.
 */
export async function openFileNonces(
  path: string,
  generations: Generations,
  limits: Limits,
  log: Log,
): Promise<NonceStore> {
  const thread = new FileThread(async () => ({ path, key: await generations.readKey(), keyRate: limits.key }))
  const deadline = new Deadline(deadlineMs, `the nonce file ${path} did not answer in time`)
  const availability = new Availability('nonce store', log)
  const failures = limits.failures && new Buckets(limits.failures)
  let queries: PendingQuery[] = []
  let working: Promise<void> | undefined
  let current: { id: string; fence: number } | undefined
  let retryTimer: NodeJS.Timeout | undefined
  let isClosed = false

  function enqueue(query: NonceQuery, timestamp?: number): Promise<FileResult> {
    return new Promise((resolve, reject) => {
      if (queries.length >= waitingLimit) throw new Error(`too many queries wait for the nonce file ${path}`)
      queries.push({ query, timestamp, resolve, reject })
      working ??= work().finally(() => (working = undefined))
    })
  }

  async function run(query: NonceQuery, timestamp?: number): Promise<FileResult> {
    try {
      return await deadline.inTime(enqueue(query, timestamp))
    } catch (error) {
      if (!isDomainError(error)) lost(error)
      throw error
    }
  }

  function lost(error: unknown): void {
    if (isClosed) return
    availability.lost(error)
    retryTimer ??= setTimeout(() => {
      retryTimer = undefined
      void fault()
    }, retryMs).unref()
  }

  async function work(): Promise<void> {
    await new Promise(setImmediate)
    while (queries.length > 0) {
      const batch = queries.slice(0, queriesPerBatch)
      queries = queries.slice(queriesPerBatch)
      const answer = thread.run(batch.map(({ query }) => query))
      void settle(batch, answer)
      await answer.catch(() => {})
    }
  }

  async function settle(batch: PendingQuery[], answer: Promise<FileAnswer>): Promise<void> {
    try {
      const { generation, results } = await answer
      const fence = await fenceOfGeneration(generation)
      for (const [at, { timestamp, resolve, reject }] of batch.entries())
        try {
          if (timestamp !== undefined) checkFence(timestamp, fence, Math.floor(Date.now() / 1000))
          resolve(results[at]!)
        } catch (error) {
          reject(error)
        }
      // Only a write shows that the file can be written.
      if (batch.some(({ query }) => query.kind !== 'lookup')) availability.restored()
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }

  async function fenceOfGeneration({ id, beganAt }: Generation): Promise<number> {
    if (current?.id === id) return current.fence
    const { first, latest } = await generations.begin(id, allPartitions)
    if (!includesAll(latest, allPartitions)) {
      // Requests were accepted in another file or in Redis meanwhile: this file does not have their nonces.
      thread.endGeneration(id)
      throw new DomainError('S002', { retryAfterSeconds: 1 })
    }
    const fence = fenceOf(beganAt, includesAll(first, allPartitions))
    if (Date.now() / 1000 < fence && current?.id !== id)
      log.error(
        { path },
        'the nonce file was lost, replaced or changed by another program: requests that may have been accepted before are rejected with S002 for about a minute',
      )
    current = { id, fence }
    return fence
  }

  async function fault(): Promise<string | null> {
    try {
      await run({ kind: 'probe' })
      return null
    } catch (error) {
      return errorSummary(error)
    }
  }

  await Promise.race([enqueue({ kind: 'probe' }).catch(lost), sleep(startMs, undefined, { ref: false })])

  return {
    claim: (apiKey, nonce, timestamp) => run({ kind: 'claim', apiKey, nonce }, timestamp),
    async isUsed(apiKey, nonce, timestamp) {
      return !(await run({ kind: 'lookup', apiKey, nonce }, timestamp)).isNew
    },
    async countFailure(address) {
      return failures!.take(address, performance.now())
    },
    fault,
    async close() {
      isClosed = true
      clearTimeout(retryTimer)
      await working
      await thread.close()
    },
  }
}

/** The worker thread of a nonce file. It takes one batch at a time, and is started again if it has ended. */
class FileThread {
  readonly #readOptions: () => Promise<NonceFileOptions>
  #worker: Worker | undefined
  #pending: PromiseWithResolvers<FileAnswer> | undefined

  constructor(readOptions: () => Promise<NonceFileOptions>) {
    this.#readOptions = readOptions
  }

  async run(queries: NonceQuery[]): Promise<FileAnswer> {
    this.#worker ??= this.#start(await this.#readOptions())
    this.#pending = Promise.withResolvers()
    this.#send(queries)
    return this.#pending.promise
  }

  endGeneration(id: string): void {
    this.#send({ endGeneration: id })
  }

  async close(): Promise<void> {
    if (!this.#worker) return
    const exited = once(this.#worker, 'exit')
    this.#send('close')
    await exited
  }

  #send(request: ThreadRequest): void {
    this.#worker?.postMessage(request)
  }

  #start(options: NonceFileOptions): Worker {
    const fail = (reason: string) =>
      this.#pending?.reject(new Error(`the nonce file ${options.path} cannot be used: ${reason}`))
    const worker = new Worker(new URL('./nonce-file-thread.ts', import.meta.url), { workerData: options })
    worker.on('message', (answer: ThreadAnswer) => {
      if ('fault' in answer) fail(answer.fault)
      else this.#pending?.resolve(answer)
    })
    worker.on('error', error => fail(errorSummary(error)))
    worker.on('exit', () => {
      this.#worker = undefined
      fail('its thread has ended')
    })
    return worker
  }
}
