import type { ServerResponse } from 'node:http'
import { BodyMemory } from '@workspace-wallet/runtime'

/**
 * Memory for responses that clients have not read yet. The holder of a key can request large ones on many connections, and read
 * none of them. Workspaces share the memory. One workspace gets at most half of it. When it is used up, connections of the
 * workspace that uses most are closed, those with the oldest responses first.
 */
export class ResponseMemory {
  readonly #memory: BodyMemory

  constructor(limitBytes: number) {
    this.#memory = new BodyMemory(limitBytes)
  }

  /** Bytes of all responses that the operating system has not taken over yet. */
  get usedBytes(): number {
    return this.#memory.usedBytes
  }

  /** Counts a response that was just sent, until the operating system has taken it over or its connection is closed. */
  hold(response: ServerResponse, workspaceId: string, bytes: number): void {
    const { socket } = response.req
    if (socket.destroyed) return
    const share = this.#memory.begin(workspaceId, () => socket.destroy())
    const release = () => {
      this.#memory.release(share)
      response.off('finish', release)
      socket.off('close', release)
    }
    response.once('finish', release)
    // Node emits no `close` for a response that waits for an earlier one when their connection is closed. There are as many
    // listeners as requests that a connection may pipeline.
    socket.setMaxListeners(0)
    socket.once('close', release)
    this.#memory.resize(share, bytes)
  }
}
