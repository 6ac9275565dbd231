import https from 'node:https'
import net, { type Socket, type TcpNetConnectOpts } from 'node:net'
import { Duplex } from 'node:stream'
import tls, { type ConnectionOptions } from 'node:tls'
import type { TlsTurns } from './tls-turns.ts'

/**
 * What a receiver may send until its handshake is complete, most of which is its certificates: usually 3 to 6 KB. OpenSSL accepts 100 KB,
 * and decodes and checks the keys and names of all certificates before it says that it does not trust them. `TlsTurns` cannot interrupt
 * that.
 */
const maxHandshakeBytes = 16_384

class HandshakeTooLarge extends Error {
  readonly code = 'ERR_TLS_HANDSHAKE_TOO_LARGE'

  constructor() {
    super('the handshake of the receiver is too large')
  }
}

/** A connection whose bytes are counted, and wait for the turn of their workspace, before OpenSSL gets them. */
class LimitedConnection extends Duplex {
  readonly #socket: Socket
  #leftBytes = maxHandshakeBytes
  #isWaiting = false

  constructor(socket: Socket, turns: TlsTurns, workspaceId: string) {
    super()
    this.#socket = socket
    const allowance = turns.newAllowance()
    const take = (give: () => void) => turns.take(workspaceId, allowance, give)
    socket.on('data', piece => {
      this.#leftBytes -= piece.length
      if (this.#leftBytes < 0) return void this.destroy(new HandshakeTooLarge())
      this.#isWaiting = true
      socket.pause()
      take(() => {
        this.#isWaiting = false
        if (!this.destroyed && this.push(piece)) socket.resume()
      })
    })
    // What has arrived before is read before.
    socket.on('end', () => take(() => this.destroyed || this.push(null)))
    socket.on('error', error => take(() => this.destroy(error)))
    socket.on('close', () => take(() => this.destroy()))
  }

  endHandshake(): void {
    this.#leftBytes = Number.POSITIVE_INFINITY
  }

  override _read(): void {
    if (!this.#isWaiting) this.#socket.resume()
  }

  override _write(piece: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(piece, done)
  }

  override _final(done: () => void): void {
    this.#socket.end(done)
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy()
    done(error)
  }
}

/**
 * Makes connections that end if the receiver sends more than `maxHandshakeBytes` until the handshake is complete. What it sends waits for
 * the turn of its workspace.
 */
export class LimitedTlsAgent extends https.Agent {
  readonly #turns: TlsTurns
  readonly #workspaceId: string

  /** @param workspaceId whose receivers the connections are for */
  constructor(options: https.AgentOptions, turns: TlsTurns, workspaceId: string) {
    super(options)
    this.#turns = turns
    this.#workspaceId = workspaceId
  }

  override createConnection(options: ConnectionOptions & TcpNetConnectOpts): tls.TLSSocket {
    const connection = new LimitedConnection(net.connect(options), this.#turns, this.#workspaceId)
    const secure = tls.connect({ ...options, socket: connection })
    return secure.once('secureConnect', () => connection.endHandshake())
  }
}
