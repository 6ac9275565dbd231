import { randomUUID } from 'node:crypto'
import { type FileHandle, open, readFile, rename } from 'node:fs/promises'
import { type Limits, type Rate, type Tally, take } from '../limits/rate.ts'
import { checkFence, fenceOf, type IsFirstMemory, type NonceStore, nonceLifeMs } from './store.ts'

type Line = { text: string; resolve: () => void; reject: (error: unknown) => void }

/** The first line of a file: the memory's id, and when it began, in seconds. */
const headPattern = /^memory (\S+) (\d+)$/

/**
 * Nonces of a single gateway, for embedded mode: in memory, and in an append-only file that is read back on start,
 * so that a restart forgets none. A claim returns when its line is on the disk. A file that is gone is a memory lost.
 *
 * Two generations, in memory and on disk: every lifetime the older one is dropped and the younger takes its place,
 * so a nonce is kept for one to two lifetimes and nothing grows for ever.
 */
export async function openFileNonces(path: string, isFirst: IsFirstMemory, limits: Limits): Promise<NonceStore> {
  const oldPath = `${path}.old`
  const kept = [...(await readLines(oldPath)), ...(await readLines(path))]
  const [, id, beganAt] = kept.map(line => headPattern.exec(line)).findLast(match => match) ?? []
  const head = { id: id ?? randomUUID(), beganAt: Number(beganAt ?? nowSeconds()) }
  let young = new Set(kept)
  let old = new Set<string>()
  let file: FileHandle = await open(path, 'a', 0o600)
  // Ends a line that a crash has torn, so that the next one stands alone.
  await file.appendFile('\n')
  await writeHead()
  let fence: number | undefined
  let queue: Line[] = []
  let writing: Promise<void> | undefined
  let turning = false

  const timer = setInterval(() => {
    turning = true
    writing ??= write()
  }, nonceLifeMs)
  timer.unref()

  async function writeHead(): Promise<void> {
    await file.appendFile(`memory ${head.id} ${head.beganAt}\n`)
    await file.datasync()
  }

  async function turn(): Promise<void> {
    turning = false
    await file.close()
    await rename(path, oldPath)
    file = await open(path, 'a', 0o600)
    await writeHead()
    old = young
    young = new Set()
    for (const [bucket, fullAt] of buckets) if (fullAt < Date.now() * 1000) buckets.delete(bucket)
  }

  async function write(): Promise<void> {
    await null
    while (queue.length > 0 || turning) {
      const lines = queue
      queue = []
      try {
        if (lines.length > 0) {
          await file.appendFile(lines.map(({ text }) => `${text}\n`).join(''))
          await file.datasync()
        }
        if (turning) await turn()
        for (const { resolve } of lines) resolve()
      } catch (error) {
        for (const { reject } of lines) reject(error)
      }
    }
    writing = undefined
  }

  /** When each bucket is full again, in microseconds; one that is full need not be kept. */
  const buckets = new Map<string, number>()

  function takeFrom(bucket: string, rate: Rate): Tally {
    const { fullAt, ...tally } = take(rate, buckets.get(bucket) ?? 0, Date.now() * 1000)
    buckets.set(bucket, fullAt)
    return tally
  }

  async function check(timestamp: number): Promise<void> {
    fence ??= fenceOf(head.beganAt, await isFirst(head.id))
    checkFence(timestamp, fence, nowSeconds())
  }

  return {
    async claim(apiKey, nonce, timestamp) {
      await check(timestamp)
      const text = `${apiKey} ${nonce}`
      if (young.has(text) || old.has(text)) return { isNew: false }
      young.add(text)
      await new Promise<void>((resolve, reject) => {
        queue.push({ text, resolve, reject })
        writing ??= write()
      })
      return limits.key ? { isNew: true, tally: takeFrom(`key:${apiKey}`, limits.key) } : { isNew: true }
    },
    async isUsed(apiKey, nonce, timestamp) {
      await check(timestamp)
      const text = `${apiKey} ${nonce}`
      return young.has(text) || old.has(text)
    },
    async countFailure(address) {
      return takeFrom(`address:${address}`, limits.failures!)
    },
    async isReachable() {
      return true
    },
    async close() {
      clearInterval(timer)
      await writing
      await file.close()
    },
  }
}

function nowSeconds(): number {
  return Math.floor(Date.now() / 1000)
}

async function readLines(path: string): Promise<string[]> {
  try {
    return (await readFile(path, 'utf8')).split('\n').filter(line => line !== '')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
