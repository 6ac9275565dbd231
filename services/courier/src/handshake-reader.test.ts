import { X509Certificate } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { makeCertificate } from '../../../test/setup/certificates.ts'
import { HandshakeReader } from './handshake-reader.ts'

/** In DER. */
let usual: Buffer
let explicitCurve: Buffer
beforeAll(async () => {
  const der = async (kind: 'ec' | 'explicitCurve') => new X509Certificate((await makeCertificate('a', kind)).cert).raw
  ;[usual, explicitCurve] = [await der('ec'), await der('explicitCurve')]
})

const vector = (content: Buffer) => Buffer.concat([Buffer.alloc(3), content]).fill(lengthOf(content), 0, 3)
const lengthOf = ({ length }: Buffer) => Buffer.of(length >> 16, length >> 8, length)
const certificates = (...list: Buffer[]) =>
  Buffer.concat([Buffer.of(11), vector(vector(Buffer.concat(list.map(vector))))])
const record = (type: number, content: Buffer) =>
  Buffer.concat([Buffer.from([type, 3, 3, content.length >> 8, content.length & 255]), content])
const [changeCipherSpec, alert, handshake, applicationData] = [20, 21, 22, 23] as const

/** All records that OpenSSL would get of these bytes, which arrive in pieces of this size. */
function read(bytes: Buffer, pieceBytes: number): Buffer[] {
  const reader = new HandshakeReader()
  const records: Buffer[] = []
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    reader.add(bytes.subarray(at, at + pieceBytes))
    for (let next = reader.next(); next; next = reader.next()) records.push(next)
  }
  expect(reader.rest).toEqual(Buffer.alloc(0))
  return records
}

test.each([1, 4, 7, 10_000])('records are complete, however they arrive: pieces of %d bytes', pieceBytes => {
  const records = [
    record(handshake, Buffer.from([2, 0, 0, 1, 0])),
    record(handshake, certificates(usual, usual)),
    record(handshake, Buffer.alloc(0)),
    record(changeCipherSpec, Buffer.of(1)),
  ]
  expect(read(Buffer.concat(records), pieceBytes)).toEqual(records)
})

test('a key that is not allowed is found wherever the messages are divided', () => {
  const messages = Buffer.concat([Buffer.from([0, 0, 0, 0, 2, 0, 0, 1, 0]), certificates(usual, explicitCurve)])
  for (let at = 0; at <= messages.length; at++) {
    const [first, second] = [messages.subarray(0, at), messages.subarray(at)]
    const records = [record(handshake, first), record(alert, certificates(usual)), record(handshake, second)]
    expect(() => read(Buffer.concat(records), 300)).toThrow(
      expect.objectContaining({ code: 'ERR_TLS_UNSUPPORTED_KEY' }),
    )
  }
})

test.each<[string, () => Buffer]>([
  ['text', () => Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')],
  ['a record that is larger than TLS allows', () => record(handshake, Buffer.alloc(20_000))],
  ['encrypted bytes before there is a key', () => record(applicationData, Buffer.alloc(100))],
  ['no certificate', () => record(handshake, certificates(Buffer.alloc(100)))],
  ['a part of a certificate', () => record(handshake, certificates(usual.subarray(0, -1)))],
  // BER, which OpenSSL would read: a length of 0x80 means that the end is marked.
  [
    'a certificate without a length',
    () => record(handshake, certificates(Buffer.concat([Buffer.of(0x30, 0x80), usual.subarray(4), Buffer.alloc(2)]))),
  ],
  [
    'a list that ends within a certificate',
    () => record(handshake, Buffer.concat([Buffer.of(11), vector(vector(Buffer.from([0, 1, 0, 0])))])),
  ],
])('what is no handshake is given to nobody: %s', (_, bytes) => {
  expect(() => read(bytes(), 10)).toThrow(expect.objectContaining({ code: 'ERR_TLS_UNREADABLE_HANDSHAKE' }))
})
