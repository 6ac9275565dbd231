import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { isDomainError } from '@workspace-wallet/contract'
import type { Log } from '@workspace-wallet/runtime'
import { Availability, errorSummary } from '../../observability/availability.ts'
import type { Fault } from '../../observability/readiness.ts'
import { Buckets } from '../limits/buckets.ts'
import type { Limits } from '../limits/rate.ts'
import { Deadline } from './deadline.ts'
import type { FileAnswer, FileAnswers, Generation, NonceFileOptions, Question } from './nonce-file.ts'
import type { ThreadAnswer } from './nonce-file-thread.ts'
import { checkFence, fenceOf, type IsFirstGeneration, type NonceStore } from './store.ts'

/** A disk takes milliseconds; one that takes this long hangs. */
const deadlineMs = 700
const questionsPerBatch = 200
/** Questions that may wait for a disk that hangs. */
const waitingLimit = 10_000
/** How long the start waits for the thread and its file; past it the gateway listens, and is not ready. */
const startMs = 5_000
/** How often a file that cannot be used is tried again while nobody asks. */
const retryMs = 1_000

type Ask = {
  question: Question
  /** Of the request; a probe has none. */
  timestamp: number | undefined
  resolve: (answer: FileAnswer) => void
  reject: (error: unknown) => void
}

/**
 * Nonces of a single gateway, for embedded mode, in an SQLite file (see nonce-file.ts) that a thread of its own reads and
 * writes. What is asked while a batch is on the disk makes up the next one.
 */
export async function openFileNonces(
  path: string,
  isFirst: IsFirstGeneration,
  limits: Limits,
  log: Log,
): Promise<NonceStore> {
  const thread = new FileThread({ path, keyRate: limits.key })
  const deadline = new Deadline(deadlineMs, `the nonce file ${path} did not answer in time`)
  const availability = new Availability('nonce store', log)
  const failures = limits.failures && new Buckets(limits.failures)
  let asks: Ask[] = []
  let working: Promise<void> | undefined
  let current: { id: string; fence: number } | undefined
  let retryTimer: NodeJS.Timeout | undefined
  let isClosed = false

  function enqueue(question: Question, timestamp?: number): Promise<FileAnswer> {
    return new Promise((resolve, reject) => {
      if (asks.length >= waitingLimit) throw new Error(`too much waits for the nonce file ${path}`)
      asks.push({ question, timestamp, resolve, reject })
      working ??= work().finally(() => (working = undefined))
    })
  }

  async function ask(question: Question, timestamp?: number): Promise<FileAnswer> {
    try {
      return await deadline.inTime(enqueue(question, timestamp))
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
    while (asks.length > 0) {
      const batch = asks.slice(0, questionsPerBatch)
      asks = asks.slice(questionsPerBatch)
      const answered = thread.ask(batch.map(({ question }) => question))
      void settle(batch, answered)
      await answered.catch(() => {})
    }
  }

  async function settle(batch: Ask[], answered: Promise<FileAnswers>): Promise<void> {
    try {
      const { generation, answers } = await answered
      const fence = await fenceOfGeneration(generation)
      for (const [at, { timestamp, resolve, reject }] of batch.entries())
        try {
          if (timestamp !== undefined) checkFence(timestamp, fence, Math.floor(Date.now() / 1000))
          resolve(answers[at]!)
        } catch (error) {
          reject(error)
        }
      // Only what was written shows that it can be.
      if (batch.some(({ question }) => question.kind !== 'look')) availability.back()
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }

  async function fenceOfGeneration({ id, beganAt }: Generation): Promise<number> {
    if (current?.id === id) return current.fence
    const isTheFirst = await isFirst(id)
    const fence = fenceOf(beganAt, isTheFirst)
    if (Date.now() / 1000 < fence && current?.id !== id)
      log.error(
        { path },
        'the nonce file was lost, replaced or changed by somebody else: what may have been accepted before is refused for about a minute (S002)',
      )
    current = { id, fence }
    return fence
  }

  async function fault(): Promise<Fault> {
    try {
      await ask({ kind: 'probe' })
      return null
    } catch (error) {
      return errorSummary(error)
    }
  }

  await Promise.race([enqueue({ kind: 'probe' }).catch(lost), sleep(startMs, undefined, { ref: false })])

  return {
    claim: (apiKey, nonce, timestamp) => ask({ kind: 'claim', apiKey, nonce }, timestamp),
    async isUsed(apiKey, nonce, timestamp) {
      return !(await ask({ kind: 'look', apiKey, nonce }, timestamp)).isNew
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

/** The thread of a nonce file; one batch of questions at a time. A thread that has ended is started again. */
class FileThread {
  readonly #options: NonceFileOptions
  #worker: Worker | undefined
  #pending: PromiseWithResolvers<FileAnswers> | undefined

  constructor(options: NonceFileOptions) {
    this.#options = options
  }

  ask(questions: Question[]): Promise<FileAnswers> {
    this.#worker ??= this.#start()
    this.#pending = Promise.withResolvers()
    this.#worker.postMessage(questions)
    return this.#pending.promise
  }

  async close(): Promise<void> {
    if (!this.#worker) return
    this.#worker.postMessage('close')
    await once(this.#worker, 'exit')
  }

  #start(): Worker {
    const worker = new Worker(new URL('./nonce-file-thread.ts', import.meta.url), { workerData: this.#options })
    worker.on('message', (answer: ThreadAnswer) => {
      if ('fault' in answer) this.#fail(answer.fault)
      else this.#pending?.resolve(answer)
    })
    worker.on('error', error => this.#fail(errorSummary(error)))
    worker.on('exit', () => {
      this.#worker = undefined
      this.#fail('its thread has ended')
    })
    return worker
  }

  #fail(reason: string): void {
    this.#pending?.reject(new Error(`the nonce file ${this.#options.path} cannot be used: ${reason}`))
  }
}
