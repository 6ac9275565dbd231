/** Files that only their owner may read, and that are there in full or not at all. */
import { open, readFile, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

export async function writePrivateJson(path: string, value: unknown): Promise<void> {
  const draft = `${path}.${process.pid}.draft`
  await rm(draft, { force: true })
  const file = await open(draft, 'wx', 0o600)
  try {
    await file.writeFile(`${JSON.stringify(value, null, 2)}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(draft, path)
  const directory = await open(dirname(path), 'r')
  await directory.sync()
  await directory.close()
}

/** Undefined when there is no such file. */
export async function readJson(path: string): Promise<unknown> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Error(`${path} is damaged (${(error as Error).message}): restore it from a copy.`, { cause: error })
  }
}
