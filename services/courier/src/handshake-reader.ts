import { createDecipheriv, createHmac } from 'node:crypto'
import { checkCertificates } from './certificate-keys.ts'
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
const recordTypes = { handshake: 22, applicationData: 23 }
const messageHeaderBytes = 4
const certificateMessage = 11

/**
 * Reads what a receiver sends until its handshake is complete, before OpenSSL does. OpenSSL decodes the keys of all certificates before it
 * checks anything else, and has no setting for which ones. It takes 0.25 s for one on a curve that the certificate describes instead of
 * naming it, keeps memory for good for each algorithm that it has not seen before, and is slow with some others.
 */
export class HandshakeReader {
  #received = Buffer.alloc(0)
  /** The handshake messages from the first one that is not complete: they may be divided among records anywhere. */
  #messages = Buffer.alloc(0)
  #key: { cipher: string; key: Buffer; iv: Buffer } | undefined
  /** How many records have been decrypted. */
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
    this.#messages = Buffer.concat([this.#messages, this.#messagesIn(record)])
    this.#readMessages()
    return record
  }

  #readMessages(): void {
    while (this.#messages.length >= messageHeaderBytes) {
      const end = messageHeaderBytes + this.#messages.readUIntBE(1, 3)
      if (this.#messages.length < end) return
      const [type] = this.#messages
      if (type === certificateMessage)
        checkCertificates(this.#messages.subarray(messageHeaderBytes, end), this.#key ? 'TLSv1.3' : 'TLSv1.2')
      this.#messages = this.#messages.subarray(end)
    }
  }

  #messagesIn(record: Buffer): Buffer {
    const content = record.subarray(headerBytes)
    if (record[0] === recordTypes.handshake) return content
    if (record[0] !== recordTypes.applicationData) return Buffer.alloc(0)
    const inner = this.#decrypt(content)
    let end = inner.length
    // The type of the content follows it, and then any number of zeros.
    while (end > 0 && inner[end - 1] === 0) end--
    return inner[end - 1] === recordTypes.handshake ? inner.subarray(0, end - 1) : Buffer.alloc(0)
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
