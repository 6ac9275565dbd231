/** Reads and writes checkpoint files: JSON Lines, to be stored by somebody who cannot change the database. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open, rm } from 'node:fs/promises'

/**
 * Writes a new file durably. Removes it again if it cannot be completed.
 *
 * @returns the SHA-256 of its bytes, in hex
 * @throws Error that says what to change, also if the file exists: an older checkpoint is never overwritten
 */
export async function writeCheckpointFile(file: string, lines: AsyncIterable<string>): Promise<string> {
  const handle = await open(file, 'wx').catch((error: NodeJS.ErrnoException) => {
    throw new Error(
      error.code === 'EEXIST'
        ? `${file} already exists, and checkpoints are not overwritten: choose another name with --out.`
        : `Cannot write the checkpoint to ${file} (${error.code}): choose another path with --out.`,
      { cause: error },
    )
  })
  const digest = createHash('sha256')
  try {
    for await (const line of lines) {
      digest.update(line)
      await handle.writeFile(line)
    }
    await handle.sync()
    await handle.close()
  } catch (error) {
    await handle.close().catch(() => {})
    await rm(file, { force: true })
    const { code, syscall } = error as NodeJS.ErrnoException
    throw syscall
      ? new Error(`Cannot write the checkpoint to ${file} (${code}): choose another path with --out.`, { cause: error })
      : error
  }
  return digest.digest('hex')
}

/** @throws Error that says which file to give, if this one cannot be read */
export async function* readCheckpointFile(file: string): AsyncGenerator<string> {
  try {
    yield* createReadStream(file, 'utf8')
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException
    throw syscall
      ? new Error(`Cannot read the checkpoint from ${file} (${code}): give a file that ledger checkpoint wrote.`, {
          cause: error,
        })
      : error
  }
}
