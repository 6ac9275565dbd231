import { createHash } from 'node:crypto'
import { type FileHandle, link, open, rm, stat } from 'node:fs/promises'

/**
 * Writes a new file durably. Until it is complete it has the name `FILE.part`, so that no half file ever has its name, even if
 * the machine fails. It never replaces a file.
 *
 * @param what the plural of what the file contains, for errors: `checkpoints`
 * @returns the SHA-256 of its bytes, in hex
 * @throws Error that says what to change. If writing fails, no file is left.
 */
export async function writeNewFile(file: string, what: string, lines: AsyncIterable<string>): Promise<string> {
  if (await stat(file).catch(() => null)) throw alreadyExists(file, what)
  const part = `${file}.part`
  const handle = await open(part, 'wx').catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'EEXIST'
      ? new Error(`${part} exists, which another command is writing or has left: wait for it, or delete that file.`)
      : cannotWrite(file, error)
  })
  try {
    const sha256 = await writeLines(handle, lines)
    // Unlike a rename, it fails if another command has created the file since.
    await link(part, file)
    return sha256
  } catch (error) {
    await handle.close().catch(() => {})
    const { code, syscall } = error as NodeJS.ErrnoException
    if (!syscall) throw error
    throw code === 'EEXIST' ? alreadyExists(file, what) : cannotWrite(file, error as Error)
  } finally {
    await rm(part, { force: true })
  }
}

async function writeLines(handle: FileHandle, lines: AsyncIterable<string>): Promise<string> {
  const digest = createHash('sha256')
  for await (const line of lines) {
    digest.update(line)
    await handle.writeFile(line)
  }
  await handle.sync()
  await handle.close()
  return digest.digest('hex')
}

function alreadyExists(file: string, what: string): Error {
  return new Error(`${file} already exists, and ${what} are not overwritten: choose another name with --out.`)
}

function cannotWrite(file: string, cause: NodeJS.ErrnoException): Error {
  if (cause.code === 'ENOENT')
    return new Error(`The directory of ${file} does not exist: create it, or choose another path with --out.`, {
      cause,
    })
  return new Error(`Cannot write to ${file} (${cause.code}): choose another path with --out.`, { cause })
}
