import { TlsError } from './tls-error.ts'

/**
 * How the keys of certificates begin: their algorithm, with its parameters. The first four are those that public authorities may certify,
 * byte for byte (Baseline Requirements of the CA/Browser Forum, section 7.1.3.1); private ones also use the others (RFC 8410).
 */
const keyAlgorithms = {
  RSA: '300d06092a864886f70d0101010500',
  'P-256': '301306072a8648ce3d020106082a8648ce3d030107',
  'P-384': '301006072a8648ce3d020106052b81040022',
  'P-521': '301006072a8648ce3d020106052b81040023',
  Ed25519: '300506032b6570',
  Ed448: '300506032b6571',
}
const beginnings = Object.values(keyAlgorithms).map(algorithm => Buffer.from(algorithm, 'hex'))

/**
 * Checks that all certificates of a message have keys of these algorithms.
 *
 * @param version of TLS: each has its own format (RFC 5246, section 7.4.2, and RFC 8446, section 4.4.2)
 * @throws TlsError
 */
export function checkCertificates(message: Buffer, version: 'TLSv1.2' | 'TLSv1.3'): void {
  const body = new Reader(message)
  if (version === 'TLSv1.3') body.takeVector(1)
  const list = new Reader(body.takeVector(3))
  while (!list.isAtEnd) {
    const certificate = list.takeVector(3)
    if (version === 'TLSv1.3') list.takeVector(2)
    const key = keyOf(certificate)
    if (!beginnings.some(beginning => key.subarray(0, beginning.length).equals(beginning)))
      throw new TlsError('ERR_TLS_UNSUPPORTED_KEY')
  }
}

const tags = { integer: 0x02, sequence: 0x30, version: 0xa0 }

/** The content of SubjectPublicKeyInfo (RFC 5280, section 4.1). */
function keyOf(certificate: Buffer): Buffer {
  const signed = new Reader(certificate).takeElement(tags.sequence)
  const fields = new Reader(new Reader(signed).takeElement(tags.sequence))
  if (fields.has(tags.version)) fields.takeElement(tags.version)
  fields.takeElement(tags.integer)
  for (const _ of ['signature algorithm', 'issuer', 'validity', 'subject']) fields.takeElement(tags.sequence)
  return fields.takeElement(tags.sequence)
}

/** @throws TlsError for what has another form */
class Reader {
  #bytes: Buffer

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get isAtEnd(): boolean {
    return this.#bytes.length === 0
  }

  /** Whether the next byte is this one. */
  has(tag: number): boolean {
    return this.#bytes[0] === tag
  }

  take(count: number): Buffer {
    if (this.#bytes.length < count) throw unreadable()
    const taken = this.#bytes.subarray(0, count)
    this.#bytes = this.#bytes.subarray(count)
    return taken
  }

  /** Of TLS: its length, and so many bytes. */
  takeVector(lengthBytes: number): Buffer {
    return this.take(this.take(lengthBytes).readUIntBE(0, lengthBytes))
  }

  /** Of DER: a tag, a length, and so many bytes. OpenSSL also reads elements without a length, which this refuses. */
  takeElement(tag: number): Buffer {
    if (!this.has(tag)) throw unreadable()
    const length = this.take(2)[1]!
    if (length < 0x80) return this.take(length)
    const lengthBytes = length & 0x7f
    if (lengthBytes < 1 || lengthBytes > 3) throw unreadable()
    return this.takeVector(lengthBytes)
  }
}

function unreadable(): TlsError {
  return new TlsError('ERR_TLS_UNREADABLE_HANDSHAKE')
}
