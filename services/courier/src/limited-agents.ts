import http from 'node:http'
import https from 'node:https'
import net, { type Socket, type TcpNetConnectOpts } from 'node:net'
import { Duplex } from 'node:stream'
import tls, { type ConnectionOptions } from 'node:tls'
import { HandshakeReader } from './handshake-reader.ts'
import type { ReceiverTurns } from './receiver-turns.ts'
import { TlsError } from './tls-error.ts'

/**
 * What a receiver may send until its handshake is complete, most of which is its certificates: usually 3 to 6 KB. OpenSSL accepts 100 KB,
 * and decodes and checks the keys and names of all certificates before it says that it does not trust them. `ReceiverTurns` cannot interrupt
 * that.
 */
const maxHandshakeBytes = 16_384

/** A connection whose bytes wait for the turn of their workspace. With TLS, those of the handshake are counted and read before. */
class LimitedConnection extends Duplex {
  readonly #socket: Socket
  readonly #handshake = new HandshakeReader()
  /** Whether there is no handshake, or no more. */
  #isComplete: boolean
  #leftBytes = maxHandshakeBytes
  #isWaiting = false

  constructor(socket: Socket, { turns, workspaceId, hasTls }: Receivers & { hasTls: boolean }) {
    super()
    this.#socket = socket
    this.#isComplete = !hasTls
    const allowance = turns.newAllowance()
    const take = (give: () => void) => turns.take(workspaceId, allowance, give)
    socket.on('data', piece => {
      this.#leftBytes -= piece.length
      if (!this.#isComplete && this.#leftBytes < 0)
        return void this.destroy(new TlsError('ERR_TLS_HANDSHAKE_TOO_LARGE'))
      this.#isWaiting = true
      socket.pause()
      take(() => {
        this.#isWaiting = false
        if (!this.destroyed && this.#give(piece)) socket.resume()
      })
    })
    // What has arrived before is read before.
    socket.on('end', () => take(() => this.destroyed || this.push(null)))
    socket.on('error', error => take(() => this.destroy(error)))
    socket.on('close', () => take(() => this.destroy()))
  }

  /** @param secure gets the bytes of this connection */
  readHandshakeOf(secure: tls.TLSSocket): void {
    const completed = () => {
      this.#isComplete = true
    }
    secure.on('keylog', line => {
      const [label, , secret] = line.toString().trim().split(' ')
      if (label === 'SERVER_HANDSHAKE_TRAFFIC_SECRET')
        this.#handshake.useSecret(secure.getCipher().name, Buffer.from(secret!, 'hex'))
      // With TLS 1.3, a receiver may send more before it has the last message of the courier.
      if (label === 'SERVER_TRAFFIC_SECRET_0') completed()
    })
    secure.once('secureConnect', completed)
  }

  /** Gives OpenSSL one record of the handshake at a time: it computes the keys of the next one. @returns whether it takes more */
  #give(piece: Buffer): boolean {
    if (this.#isComplete) return this.push(piece)
    try {
      this.#handshake.add(piece)
      while (!this.#isComplete) {
        const record = this.#handshake.next()
        if (!record) return true
        this.push(record)
        if (this.destroyed) return false
      }
    } catch (error) {
      this.destroy(error as Error)
      return false
    }
    const { rest } = this.#handshake
    return rest.length === 0 || this.push(rest)
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

/** The receivers of a workspace, and the turns that they take. */
type Receivers = { workspaceId: string; turns: ReceiverTurns }

/** Makes connections without TLS. What the receiver sends waits for the turn of its workspace. */
export class LimitedAgent extends http.Agent {
  readonly #receivers: Receivers

  constructor(options: http.AgentOptions, receivers: Receivers) {
    super(options)
    this.#receivers = receivers
  }

  override createConnection(options: TcpNetConnectOpts): Duplex {
    return new LimitedConnection(net.connect(options), { ...this.#receivers, hasTls: false })
  }
}

/**
 * Makes connections with TLS, which also end if the receiver sends more than `maxHandshakeBytes` until the handshake is complete, or a
 * certificate that `HandshakeReader` refuses.
 */
export class LimitedTlsAgent extends https.Agent {
  readonly #receivers: Receivers

  constructor(options: https.AgentOptions, receivers: Receivers) {
    super(options)
    this.#receivers = receivers
  }

  override createConnection(options: ConnectionOptions & TcpNetConnectOpts): tls.TLSSocket {
    const connection = new LimitedConnection(net.connect(options), { ...this.#receivers, hasTls: true })
    const secure = tls.connect({ ...options, socket: connection })
    connection.readHandshakeOf(secure)
    return secure
  }
}
