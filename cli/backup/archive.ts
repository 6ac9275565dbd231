/** A directory with archived write-ahead log: the segments that `archive_command`, `archive_library` or pg_receivewal copy there. */
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'

/** The name of a segment: timeline, log and segment, each with eight hexadecimal digits. */
const segmentName = /^([0-9A-F]{8})([0-9A-F]{8})([0-9A-F]{8})(\.partial)?$/
/** PostgreSQL counts the segments of each 4 GiB of the log anew. */
const logBytes = 2n ** 32n
const minSegmentBytes = 2 ** 20

/** A place in the write-ahead log, in bytes, and the timeline that it is on. */
export type LogPlace = { timeline: number; position: bigint }

/** The segments that a recovery can read. */
export type Archive = {
  directory: string
  /** A file in it. */
  file: string
  /** Name of the last segment, without `.partial`. */
  last: string
  /** Name of the first segment that is missing although a later one exists; null without one. */
  missing: string | null
}

/**
 * Lists the segments from the start of a backup on.
 *
 * @param directory the archive
 * @param backup the pg_wal of the backup, which has the segments that were written while it was taken
 * @param start where the recovery begins
 * @param timeline the timeline to recover to; without it, the latest in the archive, as PostgreSQL does
 * @throws Error if the directory cannot be read, or has no segment
 */
export async function readArchive(
  directory: string,
  backup: string,
  start: LogPlace,
  timeline: number | undefined,
): Promise<Archive> {
  const names = await readdir(directory).catch((error: Error) => {
    throw new Error(`The archive of the write-ahead log cannot be read (${error.message}): correct --wal.`)
  })
  const [first, ...others] = names.filter(name => segmentName.test(name))
  if (!first) throw new Error(`${directory} has no write-ahead log: give the directory of the archive with --wal.`)
  const segmentBytes = await sizeOfSegments(directory, [first, ...others])
  const history = await readHistory(directory, names, timeline ?? latestTimeline(names, start.timeline))

  /** The timeline of each segment. */
  const found = new Map<bigint, number>()
  const add = (name: string) => {
    const segment = parseSegment(name, segmentBytes)
    const end = segment && history.get(segment.timeline)
    if (!segment || end == null || segment.number * segmentBytes > end) return
    found.set(segment.number, Math.max(segment.timeline, found.get(segment.number) ?? 0))
  }
  for (const name of names) add(name)
  const begin = start.position / segmentBytes
  const last = [...found.keys()].reduce((a, b) => (b > a ? b : a), -1n)
  if (last < begin) throw new Error(`${directory} has no write-ahead log of the time after the backup: correct --wal.`)
  const lastName = nameOf(found.get(last)!, last, segmentBytes)

  for (const name of await readdir(backup)) add(name)
  let missing: string | null = null
  for (let number = begin, of = start.timeline; number <= last && !missing; number++) {
    of = found.get(number) ?? of
    if (!found.has(number)) missing = nameOf(of, number, segmentBytes)
  }
  return { directory, file: join(directory, first), last: lastName, missing }
}

/** A full disk or an interrupted copy leaves some of them incomplete. */
async function sizeOfSegments(directory: string, names: string[]): Promise<bigint> {
  let largest = 0
  for (const name of names) largest = Math.max(largest, (await stat(join(directory, name))).size)
  if (largest < minSegmentBytes || !Number.isInteger(Math.log2(largest)))
    throw new Error(`Every segment in ${directory} is incomplete: copy the archive again.`)
  return BigInt(largest)
}

function parseSegment(name: string, segmentBytes: bigint): { timeline: number; number: bigint } | null {
  const [, timeline, log, segment] = segmentName.exec(name) ?? []
  if (!timeline) return null
  const number = BigInt(`0x${log}`) * (logBytes / segmentBytes) + BigInt(`0x${segment}`)
  return { timeline: Number.parseInt(timeline, 16), number }
}

function nameOf(timeline: number, number: bigint, segmentBytes: bigint): string {
  const perLog = logBytes / segmentBytes
  return [BigInt(timeline), number / perLog, number % perLog].map(hexOf).join('')
}

/** PostgreSQL looks for the files of the following timelines one by one. */
function latestTimeline(names: string[], from: number): number {
  let timeline = from
  while (names.includes(historyName(timeline + 1))) timeline++
  return timeline
}

/** The timelines that lead to this one, each with the position at which the next one begins; null for the last. */
async function readHistory(directory: string, names: string[], timeline: number): Promise<Map<number, bigint>> {
  const unlimited = 2n ** 64n
  const history = new Map([[timeline, unlimited]])
  if (!names.includes(historyName(timeline))) return history
  const text = await readFile(join(directory, historyName(timeline)), 'utf8')
  for (const [, parent, position] of text.matchAll(/^\s*(\d+)\s+([0-9A-F]+\/[0-9A-F]+)/gm))
    history.set(Number(parent), parsePosition(position!))
  return history
}

const historyName = (timeline: number) => `${hexOf(BigInt(timeline))}.history`

function hexOf(value: bigint): string {
  return value.toString(16).toUpperCase().padStart(8, '0')
}

/** Parses a position as PostgreSQL writes it: two hexadecimal numbers of 32 bits each. */
export function parsePosition(text: string): bigint {
  const [high, low] = text.split('/')
  return BigInt(`0x${high}`) * logBytes + BigInt(`0x${low}`)
}
