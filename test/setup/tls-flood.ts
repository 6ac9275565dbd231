/**
 * A receiver that completes a TLS handshake, and answers the request with many small handshake messages before its HTTP response.
 * Node's TLS does the handshake. It offers no way to send these messages, so this file encrypts their records itself.
 */
import { createCipheriv, createHmac } from 'node:crypto'
import { createServer, type Server, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { createSecureContext, TLSSocket } from 'node:tls'
import type { Certificate } from './certificates.ts'

const recordTypes = { handshake: 22, applicationData: 23 }
const maxRecordBytes = 16_384

type TlsVersion = 'TLSv1.2' | 'TLSv1.3'
/** What the keys of the server are computed from. `secret`: the master secret, or with TLS 1.3 the first application traffic secret. */
type Secrets = { secret: Buffer; clientRandom: Buffer; serverRandom: Buffer }
type EncryptRecord = (type: number, content: Buffer) => Buffer

const messages = {
  /** Asks the client for another handshake (RFC 5246, section 7.4.1.1). */
  HelloRequest: { version: 'TLSv1.2', bytes: Buffer.from([0, 0, 0, 0]) },
  /** Lifetime 256 s, age 0x01020304, nonce [0], ticket [0], no extensions (RFC 8446, section 4.6.1). */
  NewSessionTicket: {
    version: 'TLSv1.3',
    bytes: Buffer.from([4, 0, 0, 15, 0, 0, 1, 0, 1, 2, 3, 4, 1, 0, 0, 1, 0, 0, 0]),
  },
} as const satisfies Record<string, { version: TlsVersion; bytes: Buffer }>
export type FloodMessage = keyof typeof messages

/** @param certificate with an EC key */
export function createTlsFlood(certificate: Certificate, message: FloodMessage, count: number): Server {
  const { version, bytes } = messages[message]
  const secureContext = createSecureContext({
    ...certificate,
    minVersion: version,
    maxVersion: version,
    ciphers: 'TLS_AES_128_GCM_SHA256:ECDHE-ECDSA-AES128-GCM-SHA256',
  })
  return createServer(socket => {
    socket.on('error', () => {})
    const connection = connectTls(socket, version, secureContext)
    connection.tls.once('data', () => {
      const encrypt = connection.takeOver()
      const perRecord = Math.floor(maxRecordBytes / bytes.length)
      for (let left = count; left > 0; left -= perRecord) {
        const content = Buffer.concat(Array.from({ length: Math.min(left, perRecord) }, () => bytes))
        socket.write(encrypt(recordTypes.handshake, content))
      }
      socket.write(encrypt(recordTypes.applicationData, Buffer.from('HTTP/1.1 200 OK\r\n\r\n')))
    })
  })
}

type TlsConnection = {
  tls: TLSSocket
  /** Ends the writing of Node, and encrypts the records that follow. */
  takeOver(): EncryptRecord
}

function connectTls(
  socket: Socket,
  version: TlsVersion,
  secureContext: ReturnType<typeof createSecureContext>,
): TlsConnection {
  const secrets: Partial<Secrets> = {}
  let isTakenOver = false
  const carrier = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      // The first record has the ServerHello: 5 bytes of record header, 4 of message header, 2 of version, and the random.
      secrets.serverRandom ??= Buffer.from(chunk.subarray(11, 43))
      if (!isTakenOver) socket.write(chunk)
      done()
    },
  })
  socket.on('data', chunk => {
    // With TLS 1.3, what Node sends after the client's second flight would be tickets, which use up sequence numbers.
    if (version === 'TLSv1.3' && secrets.serverRandom) isTakenOver = true
    carrier.push(chunk)
  })
  const tls = new TLSSocket(carrier, { isServer: true, secureContext })
  tls.on('error', () => {})
  tls.on('keylog', line => {
    const [label, clientRandom, secret] = line.toString().trim().split(' ')
    if (label !== 'CLIENT_RANDOM' && label !== 'SERVER_TRAFFIC_SECRET_0') return
    secrets.clientRandom = Buffer.from(clientRandom!, 'hex')
    secrets.secret = Buffer.from(secret!, 'hex')
  })
  return {
    tls,
    takeOver() {
      isTakenOver = true
      return version === 'TLSv1.2' ? encryptTls12(secrets as Secrets) : encryptTls13(secrets as Secrets)
    },
  }
}

/** AES-128-GCM (RFC 5288). The sequence number 0 was that of Finished. */
function encryptTls12({ secret, clientRandom, serverRandom }: Secrets): EncryptRecord {
  // Client key, server key, client salt, server salt (RFC 5246, section 6.3).
  const keys = prf(secret, Buffer.concat([Buffer.from('key expansion'), serverRandom, clientRandom]), 40)
  const [key, salt] = [keys.subarray(16, 32), keys.subarray(36)]
  let sequence = 1n
  return (type, content) => {
    const number = uint64(sequence++)
    const authenticated = Buffer.concat([number, recordHeader(type, content.length)])
    const cipher = createCipheriv('aes-128-gcm', key, Buffer.concat([salt, number])).setAAD(authenticated)
    const body = Buffer.concat([number, cipher.update(content), cipher.final(), cipher.getAuthTag()])
    return Buffer.concat([recordHeader(type, body.length), body])
  }
}

/** TLS_AES_128_GCM_SHA256 (RFC 8446, sections 5.2 and 5.3), from the first record after the handshake. */
function encryptTls13({ secret }: Secrets): EncryptRecord {
  const [key, iv] = [expandLabel(secret, 'key', 16), expandLabel(secret, 'iv', 12)]
  let sequence = 0n
  return (type, content) => {
    const number = uint64(sequence++)
    const nonce = iv.map((byte, at) => (at < 4 ? byte : byte ^ number[at - 4]!))
    const header = recordHeader(recordTypes.applicationData, content.length + 1 + 16)
    const cipher = createCipheriv('aes-128-gcm', key, nonce).setAAD(header)
    return Buffer.concat([
      header,
      cipher.update(content),
      cipher.update(Buffer.from([type])),
      cipher.final(),
      cipher.getAuthTag(),
    ])
  }
}

const recordHeader = (type: number, length: number) => Buffer.from([type, 3, 3, length >> 8, length & 255])

function uint64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(value)
  return bytes
}

const hmac = (key: Buffer, ...parts: Buffer[]) => createHmac('sha256', key).update(Buffer.concat(parts)).digest()

/** RFC 5246, section 5. @param seed with its label in front */
function prf(secret: Buffer, seed: Buffer, length: number): Buffer {
  let output = Buffer.alloc(0)
  for (let a = hmac(secret, seed); output.length < length; a = hmac(secret, a))
    output = Buffer.concat([output, hmac(secret, a, seed)])
  return output.subarray(0, length)
}

/** HKDF-Expand-Label without a context, of at most 32 bytes (RFC 8446, section 7.1). */
function expandLabel(secret: Buffer, name: string, length: number): Buffer {
  const label = Buffer.from(`tls13 ${name}`)
  return hmac(secret, Buffer.from([0, length, label.length]), label, Buffer.from([0, 1])).subarray(0, length)
}
