import { createDecipheriv, createHmac } from 'node:crypto'
import { TlsError } from './tls-error.ts'

/** RFC 8446, appendix B.4. The IV has 12 bytes with all of them. */
const cipherSuites: Partial<Record<string, { cipher: string; keyBytes: number; hash: string }>> = {
  TLS_AES_128_GCM_SHA256: { cipher: 'aes-128-gcm', keyBytes: 16, hash: 'sha256' },
  TLS_AES_256_GCM_SHA384: { cipher: 'aes-256-gcm', keyBytes: 32, hash: 'sha384' },
  TLS_CHACHA20_POLY1305_SHA256: { cipher: 'chacha20-poly1305', keyBytes: 32, hash: 'sha256' },
}

const headerBytes = 5
const tagBytes = 16
/** RFC 5246, section 6.2.3. */
const maxContentBytes = 16_384 + 2_048
const handshakeType = 22
const applicationDataType = 23
/** How the OIDs of the kinds of fields begin (1.2.840.10045.1, RFC 3279, section 2.3.5). Only a curve with parameters of its own has one. */
const fieldOfCurve = Buffer.from('2a8648ce3d01', 'hex')

/**
 * Reads what a receiver sends until its handshake is complete, before OpenSSL does. A certificate may describe the curve of its key instead
 * of naming it. OpenSSL takes 0.25 s to compute with such a curve before it checks anything else, and has no setting that refuses it. RFC
 * 5480 forbids such certificates.
 */
export class HandshakeReader {
  #received = Buffer.alloc(0)
  /** The last bytes of the handshake messages so far. A message may be divided among records anywhere. */
  #tail = Buffer.alloc(0)
  #key: { cipher: string; key: Buffer; iv: Buffer } | undefined
  #records = 0n

  /** What has been received of a record that is not complete. */
  get rest(): Buffer {
    return this.#received
  }

  /**
   * The keys of the handshake, with TLS 1.3, in which OpenSSL computes them from the ServerHello.
   *
   * @param secret SERVER_HANDSHAKE_TRAFFIC_SECRET
   */
  useSecret(cipherSuite: string, secret: Buffer): void {
    const suite = cipherSuites[cipherSuite]
    // A courier offers no others, unless the options of Node say so. What follows cannot be read then.
    if (!suite) return
    const { cipher, keyBytes, hash } = suite
    this.#key = { cipher, key: expandLabel(hash, secret, 'key', keyBytes), iv: expandLabel(hash, secret, 'iv', 12) }
    this.#records = 0n
  }

  add(piece: Buffer): void {
    this.#received = Buffer.concat([this.#received, piece])
  }

  /** Takes the next complete record, once it is read; undefined if there is none. @throws TlsError */
  next(): Buffer | undefined {
    if (this.#received.length < headerBytes) return undefined
    const contentBytes = this.#received.readUInt16BE(3)
    // Of version 3.x, as SSL 3.0 and all of TLS.
    if (this.#received[1] !== 3 || contentBytes > maxContentBytes) throw new TlsError('ERR_TLS_UNREADABLE_HANDSHAKE')
    const bytes = headerBytes + contentBytes
    if (this.#received.length < bytes) return undefined
    const record = this.#received.subarray(0, bytes)
    this.#received = this.#received.subarray(bytes)
    const messages = Buffer.concat([this.#tail, this.#messagesIn(record)])
    if (messages.includes(fieldOfCurve)) throw new TlsError('ERR_TLS_EXPLICIT_CURVE')
    this.#tail = messages.subarray(Math.max(0, messages.length - fieldOfCurve.length + 1))
    return record
  }

  #messagesIn(record: Buffer): Buffer {
    const content = record.subarray(headerBytes)
    if (record[0] === handshakeType) return content
    if (record[0] !== applicationDataType) return Buffer.alloc(0)
    const inner = this.#decrypt(content)
    let end = inner.length
    // The type of the content follows it, and then any number of zeros.
    while (end > 0 && inner[end - 1] === 0) end--
    return inner[end - 1] === handshakeType ? inner.subarray(0, end - 1) : Buffer.alloc(0)
  }

  /** Does not authenticate: OpenSSL does, and gets the same bytes. */
  #decrypt(content: Buffer): Buffer {
    if (!this.#key || content.length < tagBytes) throw new TlsError('ERR_TLS_UNREADABLE_HANDSHAKE')
    const { cipher, key, iv } = this.#key
    const number = Buffer.alloc(iv.length)
    number.writeBigUInt64BE(this.#records++, iv.length - 8)
    const nonce = iv.map((byte, at) => byte ^ number[at]!)
    const decipher = createDecipheriv(cipher as 'aes-128-gcm', key, nonce, { authTagLength: tagBytes })
    return decipher.update(content.subarray(0, -tagBytes))
  }
}

/** HKDF-Expand-Label without a context (RFC 8446, section 7.1), of at most as many bytes as a hash has. */
function expandLabel(hash: string, secret: Buffer, name: string, length: number): Buffer {
  const label = Buffer.from(`tls13 ${name}`)
  const info = Buffer.concat([Buffer.from([0, length, label.length]), label, Buffer.from([0, 1])])
  return createHmac(hash, secret).update(info).digest().subarray(0, length)
}
