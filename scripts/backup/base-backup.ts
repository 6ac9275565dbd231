/**
 * A base backup of a running PostgreSQL, over its replication protocol: what `pg_basebackup --format=tar
 * --wal-method=fetch` does, without that program, which the embedded PostgreSQL lacks. The file is the same: a tar of
 * the data directory, with the log that makes it whole.
 */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createWriteStream, type WriteStream } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import pg, { type Connection, type Submittable } from 'pg'

/**
 * @param url a role with the right to replicate; any database
 * @param path where the tar goes; it is there in full or not at all, for its owner only
 * @throws Error when PostgreSQL refuses, or the file cannot be written
 */
export async function takeBaseBackup(url: string, path: string): Promise<void> {
  const draft = `${path}.${process.pid}.draft`
  const file = createWriteStream(draft, { flags: 'wx', mode: 0o600, flush: true })
  // The driver knows the parameter, its types do not.
  const client = new pg.Client({ connectionString: url, replication: 'true' } as pg.ClientConfig)
  try {
    await once(file, 'open')
    await client.connect()
    // Until this session ends, the server keeps the log that the backup will need at its end.
    const slot = `backup_${randomUUID().replaceAll('-', '')}`
    await client.query(`CREATE_REPLICATION_SLOT ${slot} TEMPORARY PHYSICAL (RESERVE_WAL true)`)
    await new Promise<void>((resolve, reject) => {
      file.once('error', reject)
      client.once('error', reject)
      client.query(new BaseBackup(file, error => (error ? reject(error) : resolve())))
    })
    file.end()
    await once(file, 'close')
    await rename(draft, path)
    await syncDirectory(dirname(path))
  } finally {
    file.destroy()
    await client.end().catch(() => {})
    await rm(draft, { force: true })
  }
}

/** One BASE_BACKUP command: result sets that nobody needs, around the archive's bytes. */
class BaseBackup implements Submittable {
  readonly #file: WriteStream
  readonly #done: (error?: Error) => void
  #isPaused = false

  constructor(file: WriteStream, done: (error?: Error) => void) {
    this.#file = file
    this.#done = done
  }

  submit(connection: Connection): void {
    connection.query(`BASE_BACKUP (LABEL 'wallet', CHECKPOINT 'fast', WAL true, MANIFEST 'no')`)
  }

  handleCopyData({ chunk }: { chunk: Buffer }, connection: Connection & { stream: NodeJS.ReadableStream }): void {
    // The first byte says what follows: the archive's data (d), its name (n), or how far it is (p).
    if (chunk[0] !== 0x64) return
    // A copy: the driver uses its buffer again.
    const hasRoom = this.#file.write(Buffer.from(chunk.subarray(1)))
    // What the driver has read already still comes while it is paused.
    if (hasRoom || this.#isPaused) return
    this.#isPaused = true
    connection.stream.pause()
    this.#file.once('drain', () => {
      this.#isPaused = false
      connection.stream.resume()
    })
  }

  handleError(error: Error): void {
    this.#done(error)
  }

  handleReadyForQuery(): void {
    this.#done()
  }

  handleRowDescription(): void {}
  handleDataRow(): void {}
  handleCommandComplete(): void {}
  handleEmptyQuery(): void {}
  handlePortalSuspended(): void {}
  handleCopyInResponse(): void {}
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r')
  await directory.sync()
  await directory.close()
}
