import { type FileHandle, open, readFile, rename } from 'node:fs/promises'
import { type NonceStore, nonceLifeMs } from './store.ts'

type Line = { text: string; resolve: () => void; reject: (error: unknown) => void }

/**
 * Nonces of a single gateway, for embedded mode: in memory, and in an append-only file that is read back on start,
 * so that a restart forgets none. A claim returns when its line is on the disk.
 *
 * Two generations, in memory and on disk: every lifetime the older one is dropped and the younger takes its place,
 * so a nonce is kept for one to two lifetimes and nothing grows for ever.
 */
export async function openFileNonces(path: string): Promise<NonceStore> {
  const oldPath = `${path}.old`
  let young = new Set([...(await readLines(oldPath)), ...(await readLines(path))])
  let old = new Set<string>()
  let file: FileHandle = await open(path, 'a', 0o600)
  // Ends a line that a crash has torn, so that the next one stands alone.
  await file.appendFile('\n')
  let queue: Line[] = []
  let writing: Promise<void> | undefined
  let turning = false

  const timer = setInterval(() => {
    turning = true
    writing ??= write()
  }, nonceLifeMs)
  timer.unref()

  async function turn(): Promise<void> {
    turning = false
    await file.close()
    await rename(path, oldPath)
    file = await open(path, 'a', 0o600)
    old = young
    young = new Set()
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

  return {
    async claim(apiKey, nonce) {
      const text = `${apiKey} ${nonce}`
      if (young.has(text) || old.has(text)) return false
      young.add(text)
      await new Promise<void>((resolve, reject) => {
        queue.push({ text, resolve, reject })
        writing ??= write()
      })
      return true
    },
    async isUsed(apiKey, nonce) {
      const text = `${apiKey} ${nonce}`
      return young.has(text) || old.has(text)
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

async function readLines(path: string): Promise<string[]> {
  try {
    return (await readFile(path, 'utf8')).split('\n').filter(line => line !== '')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
