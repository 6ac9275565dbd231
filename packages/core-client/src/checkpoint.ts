import { TRPCClientError } from '@trpc/client'
import { type CheckpointPart, checkpointPart } from '@workspace-wallet/contract'
import { streamEnded } from './request-failures.ts'

/** The call that `checkpointLines` makes: of `CoreClient`, or of a client in a browser. */
export type CheckpointCalls = {
  ledger: {
    checkpoint: { query: (input: { workspaceId?: string | undefined }) => Promise<AsyncIterable<CheckpointPart>> }
  }
}

/**
 * Takes a checkpoint of all workspaces or of one, and yields its parts, each with its line for the checkpoint file.
 *
 * @throws TRPCClientError core's error; its cause is a CoreUnreachable if the stream ended before the last part
 */
export async function* checkpointLines(
  core: CheckpointCalls,
  { workspaceId }: { workspaceId?: string | undefined } = {},
): AsyncGenerator<{ part: CheckpointPart; line: string }, void> {
  for await (const part of await core.ledger.checkpoint.query({ workspaceId })) {
    yield { part, line: `${JSON.stringify(part)}\n` }
    if (part.last) return
  }
  throw TRPCClientError.from(streamEnded())
}

/** Reads a checkpoint file and yields its parts in order. If the file is invalid, the last value is the fault. */
export async function* readCheckpoint(
  lines: AsyncIterable<string> | Iterable<string>,
): AsyncGenerator<CheckpointPart | { fault: string }> {
  let before: CheckpointPart | undefined
  let number = 0
  for await (const line of wholeLines(lines)) {
    const part = partAfter(before, line, ++number)
    yield part
    if ('fault' in part) return
    before = part
  }
  if (!before?.last) yield { fault: 'it is incomplete: its last part is missing' }
}

/** @param number of the line, from 1 */
function partAfter(
  before: CheckpointPart | undefined,
  line: string,
  number: number,
): CheckpointPart | { fault: string } {
  const part = parsePart(line)
  if (!part) return { fault: `line ${number} is not a part of a checkpoint` }
  if (before?.last) return { fault: 'data follows its last part' }
  if (before && part.checkpointId !== before.checkpointId)
    return { fault: `line ${number} belongs to another checkpoint` }
  // Of a workspace, there is one place only, which may be any.
  const place = before ? before.place + Number(before.lastOfPlace) : part.workspaceId === null ? 0 : part.place
  if (part.place !== place) return { fault: `place ${place} is missing before place ${part.place}` }
  const next = before && !before.lastOfPlace ? before.part + 1 : 0
  if (part.part !== next) return { fault: `part ${next} is missing before part ${part.part}` }
  return part
}

function parsePart(line: string): CheckpointPart | null {
  try {
    return checkpointPart.parse(JSON.parse(line))
  } catch {
    return null
  }
}

/** Longer than any part. A file with a longer line is not a checkpoint, and is not read to its end. */
const maxLineLength = 2 ** 20

async function* wholeLines(pieces: AsyncIterable<string> | Iterable<string>): AsyncGenerator<string> {
  let rest = ''
  for await (const piece of pieces) {
    const lines = (rest + piece).split('\n')
    rest = lines.pop()!
    yield* lines.filter(line => line.trim() !== '')
    if (rest.length > maxLineLength) break
  }
  if (rest.trim() !== '') yield rest
}
