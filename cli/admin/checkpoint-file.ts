import { createReadStream } from 'node:fs'

/**
 * Reads a checkpoint file: JSON Lines, stored by somebody who cannot change the database.
 *
 * @throws Error that says which file to give, if this one cannot be read
 */
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
