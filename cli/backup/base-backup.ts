/**
 * Takes a base backup of a running PostgreSQL over its replication protocol, as `pg_basebackup --format=tar
 * --wal-method=fetch --manifest-checksums=SHA256` does, because the embedded PostgreSQL has no pg_basebackup. The file has
 * the same format: a tar of the data directory with the write-ahead log it needs, and a manifest of its files.
 */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createWriteStream, type WriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import pg, { type Connection, type Submittable } from 'pg'
import { syncDirectory } from '../start/private-file.ts'
import { manifestName } from './manifest.ts'

/**
 * @param url connects as a role with the REPLICATION attribute, to any database
 * @param path the file to create, readable by its owner only; it appears when it is complete
 * @throws Error if PostgreSQL rejects the backup or the file cannot be written
 */
export async function takeBaseBackup(url: string, path: string): Promise<void> {
  const draft = `${path}.${process.pid}.draft`
  const file = createWriteStream(draft, { flags: 'wx', mode: 0o600, flush: true })
  // The driver supports the parameter, but its types lack it.
  const client = new pg.Client({ connectionString: url, replication: 'true' } as pg.ClientConfig)
  try {
    await once(file, 'open')
    await client.connect()
    // The slot makes the server keep the write-ahead log that the backup needs, until this session ends.
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

/** Message types: the first byte of each CopyData message. */
const archiveStart = 0x6e
const manifestStart = 0x6d
const dataMessage = 0x64

const blockLength = 512
/** A tar ends with two blocks of zeros. */
export const tarEnd = Buffer.alloc(2 * blockLength)

/** One BASE_BACKUP command. It writes the archive and the manifest to a file, and ignores the result sets around them. */
class BaseBackup implements Submittable {
  readonly #file: WriteStream
  readonly #done: (error?: Error) => void
  #isPaused = false
  #archives = 0
  /** The last bytes of the archive so far: the manifest goes before the end of the tar. */
  #tail = Buffer.alloc(0)
  #manifest: Buffer[] | null = null

  constructor(file: WriteStream, done: (error?: Error) => void) {
    this.#file = file
    this.#done = done
  }

  submit(connection: Connection): void {
    // PostgreSQL verifies the checksum of every page that it reads, and fails if one is wrong.
    connection.query(
      `BASE_BACKUP (LABEL 'wallet', CHECKPOINT 'fast', WAL true, WAIT false, MANIFEST 'yes', MANIFEST_CHECKSUMS 'SHA256')`,
    )
  }

  handleCopyData({ chunk }: { chunk: Buffer }, connection: Connection & { stream: NodeJS.ReadableStream }): void {
    if (chunk[0] === archiveStart) this.#archives++
    else if (chunk[0] === manifestStart) this.#manifest = []
    if (chunk[0] !== dataMessage) return
    // A copy, because the driver reuses its buffer.
    const data = Buffer.from(chunk.subarray(1))
    if (this.#manifest) this.#manifest.push(data)
    else this.#write(data, connection)
  }

  #write(data: Buffer, connection: { stream: NodeJS.ReadableStream }): void {
    const bytes = Buffer.concat([this.#tail, data])
    const end = Math.max(0, bytes.length - tarEnd.length)
    this.#tail = bytes.subarray(end)
    const hasRoom = this.#file.write(bytes.subarray(0, end))
    // After a pause, the driver still delivers what it has already read.
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
    const error = this.#validate()
    if (!error) {
      this.#file.write(tarMember(manifestName, Buffer.concat(this.#manifest!)))
      this.#file.write(tarEnd)
    }
    this.#done(error)
  }

  #validate(): Error | undefined {
    if (this.#archives > 1) return new Error('The database uses tablespaces: back it up with pg_basebackup.')
    if (this.#manifest && this.#tail.equals(tarEnd)) return undefined
    return new Error('PostgreSQL sent no manifest: use PostgreSQL 18.')
  }

  handleRowDescription(): void {}
  handleDataRow(): void {}
  handleCommandComplete(): void {}
  handleEmptyQuery(): void {}
  handlePortalSuspended(): void {}
  handleCopyInResponse(): void {}
}

/** A file in a tar: a header block, then the content, padded to whole blocks. */
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
  // The checksum is computed with spaces in its own field.
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
