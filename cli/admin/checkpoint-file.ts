/** The file of a checkpoint: JSON Lines, kept by somebody who does not keep the database. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open, rm } from 'node:fs/promises'

/**
 * Writes a new file, durably. One that cannot be finished is taken away.
 *
 * @returns the SHA-256 of its bytes, in hex
 * @throws Error with a sentence; never writes over a file, for that would be an older checkpoint
 */
export async function writeCheckpointFile(file: string, lines: AsyncIterable<string>): Promise<string> {
  const handle = await open(file, 'wx').catch((error: NodeJS.ErrnoException) => {
    throw new Error(
      error.code === 'EEXIST'
        ? `${file} exists already, and a checkpoint is kept: give another --out.`
        : `The checkpoint cannot be written to ${file} (${error.code}): give another --out.`,
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
    throw syscall ? new Error(`The checkpoint cannot be written to ${file} (${code}).`, { cause: error }) : error
  }
  return digest.digest('hex')
}

/** @throws Error with a sentence */
export async function* readCheckpointFile(file: string): AsyncGenerator<string> {
  try {
    yield* createReadStream(file, 'utf8')
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException
    throw syscall
      ? new Error(`The checkpoint cannot be read from ${file} (${code}): give the file that ledger checkpoint wrote.`, {
          cause: error,
        })
      : error
  }
}
