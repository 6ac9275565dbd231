/** Files that only their owner may read, and that are written atomically. */
import { chown, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

export async function writePrivateJson(path: string, value: unknown): Promise<void> {
  await writePrivateFile(path, `${JSON.stringify(value, null, 2)}\n`, 0o600)
}

/**
 * Writes a file durably and atomically: after a crash it has its old content or the new one.
 *
 * @param owner user and group ID of the file (default: those of this process)
 */
export async function writePrivateFile(path: string, text: string, mode: number, owner?: number): Promise<void> {
  const draft = `${path}.${process.pid}.draft`
  await rm(draft, { force: true })
  const file = await open(draft, 'wx', mode)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
  if (owner !== undefined) await chown(draft, owner, owner)
  await rename(draft, path)
  await syncDirectory(dirname(path))
}

/** Makes the creation or renaming of a file in this directory durable. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r')
  await directory.sync()
  await directory.close()
}

/**
 * The content of a JSON file; undefined if there is no such file.
 *
 * @throws Error that says how to repair the file, if it is not valid JSON
 */
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
