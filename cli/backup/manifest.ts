/** The manifest of a base backup: size and SHA-256 of each of its files, as PostgreSQL read them. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { z } from 'zod'
import { type LogPlace, parsePosition } from './archive.ts'

export const manifestName = 'backup_manifest'

const manifestSchema = z.object({
  Files: z.array(
    z.object({
      Path: z.string().optional(),
      /** The path in hex, if it is not valid UTF-8. */
      'Encoded-Path': z.string().optional(),
      Size: z.int(),
      'Last-Modified': z.string().optional(),
      'Checksum-Algorithm': z.string().optional(),
      Checksum: z.string().optional(),
    }),
  ),
  'WAL-Ranges': z.array(z.object({ Timeline: z.int(), 'Start-LSN': z.string() })),
  'Manifest-Checksum': z.string(),
})
type Manifest = z.infer<typeof manifestSchema>

/**
 * Files that the manifest does not list: they are written after it, or belong to the write-ahead log, whose records have
 * checksums of their own.
 */
const unlisted = /^(backup_manifest|pg_wal\/.*|postgresql\.auto\.conf|standby\.signal|recovery\.signal)$/

/**
 * Reads every file of an unpacked backup and compares it with the manifest.
 *
 * @returns one phrase for each file that is missing, added or different
 * @throws Error that says how to take the backup, if it has no manifest with SHA-256
 */
export async function compareWithManifest(directory: string): Promise<string[]> {
  const files = await readDigests(directory)
  const faults: string[] = []
  for (const [path, { size, sha256 }] of files) {
    const found = await stat(join(directory, path)).catch(() => null)
    if (!found) faults.push(`${path} is missing`)
    else if (found.size !== size) faults.push(`${path} has ${found.size} bytes instead of ${size}`)
    else if ((await digestOf(join(directory, path))) !== sha256) faults.push(`${path} was changed after the backup`)
  }
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    const path = relative(directory, join(entry.parentPath, entry.name))
    if (entry.isFile() && !files.has(path) && !unlisted.test(path)) faults.push(`${path} is not in the manifest`)
  }
  return faults
}

/**
 * When an unpacked backup was begun, by the clock of PostgreSQL and not rounded down, and where its recovery begins in the log.
 *
 * @throws Error as compareWithManifest
 */
export async function readStart(directory: string): Promise<LogPlace & { at: Date }> {
  const { Files: files, 'WAL-Ranges': ranges } = await readManifest(directory)
  // PostgreSQL makes this file when it begins a backup. The manifest has times in UTC, and in seconds.
  const label = files.find(({ Path }) => Path === 'backup_label')?.['Last-Modified']
  const [range] = ranges
  if (!label || !range)
    throw new Error('The manifest of the backup does not say when it was begun: use another backup.')
  return {
    at: new Date(Date.parse(label) + 1_000),
    timeline: range.Timeline,
    position: parsePosition(range['Start-LSN']),
  }
}

const howTo = 'take it with npm run backup -- take, or with pg_basebackup --manifest-checksums=SHA256'

async function readManifest(directory: string): Promise<Manifest> {
  const text = await readFile(join(directory, manifestName), 'utf8').catch(() => null)
  if (text === null) throw new Error(`The backup has no manifest, so it cannot be checked: ${howTo}.`)
  const manifest = parseManifest(text)
  if (!manifest) throw new Error('The manifest of the backup is damaged: use another backup.')
  return manifest
}

async function readDigests(directory: string): Promise<Map<string, { size: number; sha256: string }>> {
  const manifest = await readManifest(directory)
  const files = new Map<string, { size: number; sha256: string }>()
  for (const file of manifest.Files) {
    const path = file.Path ?? Buffer.from(file['Encoded-Path'] ?? '', 'hex').toString('latin1')
    if (file['Checksum-Algorithm'] !== 'SHA256' || !file.Checksum)
      throw new Error(`The manifest of the backup lacks the SHA-256 of ${path}: ${howTo}.`)
    files.set(path, { size: file.Size, sha256: file.Checksum })
  }
  return files
}

/** Null if the manifest is damaged. Its last line is the checksum of all lines before it. */
function parseManifest(text: string): Manifest | null {
  try {
    const manifest = manifestSchema.parse(JSON.parse(text))
    const covered = text.slice(0, text.lastIndexOf('"Manifest-Checksum"'))
    const digest = createHash('sha256').update(covered).digest('hex')
    return digest === manifest['Manifest-Checksum'] ? manifest : null
  } catch {
    return null
  }
}

async function digestOf(path: string): Promise<string> {
  const digest = createHash('sha256')
  await pipeline(createReadStream(path), digest)
  return digest.digest('hex')
}
