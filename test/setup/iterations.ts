import type { Socket } from 'node:net'
import { setImmediate as nextIteration } from 'node:timers/promises'

/** Writes without an end, as fast as the other side reads. */
export function writeEndlessly(socket: Socket, piece: Buffer): void {
  if (socket.writable) socket.write(piece, () => writeEndlessly(socket, piece))
}

/** How many bytes are read from these sockets in each of the next iterations of the event loop. */
export async function readInIterations(sockets: readonly Socket[], iterations: number): Promise<number[]> {
  const total = () => sockets.reduce((sum, { bytesRead }) => sum + bytesRead, 0)
  const inIteration: number[] = []
  for (let before = total(); inIteration.length < iterations; before = total()) {
    await nextIteration()
    inIteration.push(total() - before)
  }
  return inIteration
}
