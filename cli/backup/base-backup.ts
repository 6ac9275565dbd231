/**
 * A base backup of a running PostgreSQL, over its replication protocol: what `pg_basebackup --format=tar
 * --wal-method=fetch --manifest-checksums=SHA256` does, without that program, which the embedded PostgreSQL lacks. The
 * file is the same: a tar of the data directory, with the log that makes it whole, and a manifest of its files.
 */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createWriteStream, type WriteStream } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import pg, { type Connection, type Submittable } from 'pg'
import { manifestName } from './manifest.ts'

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

/** What the first byte of a piece says of it. */
const archiveBegins = 0x6e
const manifestBegins = 0x6d
const isData = 0x64

const blockLength = 512
/** Two blocks of zeros end a tar. */
export const tarEnd = Buffer.alloc(2 * blockLength)

/** One BASE_BACKUP command: result sets that nobody needs, around the archive's bytes and those of its manifest. */
class BaseBackup implements Submittable {
  readonly #file: WriteStream
  readonly #done: (error?: Error) => void
  #isPaused = false
  #archives = 0
  /** The archive's last bytes so far: the manifest comes before its end. */
  #tail = Buffer.alloc(0)
  #manifest: Buffer[] | null = null

  constructor(file: WriteStream, done: (error?: Error) => void) {
    this.#file = file
    this.#done = done
  }

  submit(connection: Connection): void {
    // PostgreSQL proves the checksum of every page that it reads, and fails when one is wrong.
    connection.query(
      `BASE_BACKUP (LABEL 'wallet', CHECKPOINT 'fast', WAL true, MANIFEST 'yes', MANIFEST_CHECKSUMS 'SHA256')`,
    )
  }

  handleCopyData({ chunk }: { chunk: Buffer }, connection: Connection & { stream: NodeJS.ReadableStream }): void {
    if (chunk[0] === archiveBegins) this.#archives++
    else if (chunk[0] === manifestBegins) this.#manifest = []
    if (chunk[0] !== isData) return
    // A copy: the driver uses its buffer again.
    const data = Buffer.from(chunk.subarray(1))
    if (this.#manifest) this.#manifest.push(data)
    else this.#write(data, connection)
  }

  #write(data: Buffer, connection: { stream: NodeJS.ReadableStream }): void {
    const bytes = Buffer.concat([this.#tail, data])
    const end = Math.max(0, bytes.length - tarEnd.length)
    this.#tail = bytes.subarray(end)
    const hasRoom = this.#file.write(bytes.subarray(0, end))
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
    const fault = this.#fault()
    if (!fault) {
      this.#file.write(tarMember(manifestName, Buffer.concat(this.#manifest!)))
      this.#file.write(tarEnd)
    }
    this.#done(fault)
  }

  #fault(): Error | undefined {
    if (this.#archives > 1) return new Error('The database has tablespaces of its own: use pg_basebackup.')
    if (this.#manifest && this.#tail.equals(tarEnd)) return undefined
    return new Error('PostgreSQL ended the backup without a manifest: use PostgreSQL 18.')
  }

  handleRowDescription(): void {}
  handleDataRow(): void {}
  handleCommandComplete(): void {}
  handleEmptyQuery(): void {}
  handlePortalSuspended(): void {}
  handleCopyInResponse(): void {}
}

/** A file of a tar: a block that says what it is, then its bytes, filled up to whole blocks. */
function tarMember(name: string, content: Buffer): Buffer {
  const header = Buffer.alloc(blockLength)
  const octal = (value: number, at: number, length: number) =>
    header.write(value.toString(8).padStart(length - 1, '0'), at, 'latin1')
  header.write(name, 0)
  octal(0o600, 100, 8)
  octal(0, 108, 8)
  octal(0, 116, 8)
  octal(content.length, 124, 12)
  octal(Math.floor(Date.now() / 1000), 136, 12)
  header.write('0', 156)
  header.write('ustar\u000000', 257)
  // The checksum of the header counts itself as spaces.
  header.fill(' ', 148, 156)
  header.write(
    `${header
      .reduce((sum, byte) => sum + byte)
      .toString(8)
      .padStart(6, '0')}\0 `,
    148,
    'latin1',
  )
  const padding = Buffer.alloc((blockLength - (content.length % blockLength)) % blockLength)
  return Buffer.concat([header, content, padding])
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r')
  await directory.sync()
  await directory.close()
}
