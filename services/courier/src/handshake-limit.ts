import https from 'node:https'
import net, { type Socket, type TcpNetConnectOpts } from 'node:net'
import { Duplex } from 'node:stream'
import tls, { type ConnectionOptions } from 'node:tls'

/**
 * What a receiver may send until its handshake is complete, most of which is its certificates: usually 3 to 6 KB. OpenSSL accepts 100 KB, and
 * compares each name in them with each constraint of the others before it says that it does not trust them. With 100 KB, that takes 0.6 s
 * of the event loop.
 */
const maxHandshakeBytes = 16_384

class HandshakeTooLarge extends Error {
  readonly code = 'ERR_TLS_HANDSHAKE_TOO_LARGE'

  constructor() {
    super('the handshake of the receiver is too large')
  }
}

/** A connection whose bytes are counted before OpenSSL gets them. */
class CountedConnection extends Duplex {
  readonly #socket: Socket
  #leftBytes = maxHandshakeBytes

  constructor(socket: Socket) {
    super()
    this.#socket = socket
    socket.on('data', piece => {
      this.#leftBytes -= piece.length
      if (this.#leftBytes < 0) this.destroy(new HandshakeTooLarge())
      else if (!this.push(piece)) socket.pause()
    })
    socket.on('end', () => this.push(null))
    socket.on('error', error => this.destroy(error))
    socket.on('close', () => this.destroy())
  }

  endCount(): void {
    this.#leftBytes = Number.POSITIVE_INFINITY
  }

  override _read(): void {
    this.#socket.resume()
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

/** Ends a connection whose server sends more than `maxHandshakeBytes` until the handshake is complete. */
export class HandshakeLimitAgent extends https.Agent {
  override createConnection(options: ConnectionOptions & TcpNetConnectOpts): tls.TLSSocket {
    const connection = new CountedConnection(net.connect(options))
    const secure = tls.connect({ ...options, socket: connection })
    return secure.once('secureConnect', () => connection.endCount())
  }
}
