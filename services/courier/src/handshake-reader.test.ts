import { expect, test } from 'vitest'
import { HandshakeReader } from './handshake-reader.ts'

const record = (type: number, content: Buffer) =>
  Buffer.concat([Buffer.from([type, 3, 3, content.length >> 8, content.length & 255]), content])
const handshake = 22
const alert = 21

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
    record(handshake, Buffer.alloc(300, 1)),
    record(handshake, Buffer.alloc(0)),
    record(20, Buffer.of(1)),
  ]
  expect(read(Buffer.concat(records), pieceBytes)).toEqual(records)
})

test('a curve of its own is found wherever the message is divided', () => {
  const field = Buffer.from('06072a8648ce3d0101', 'hex')
  const message = Buffer.concat([Buffer.alloc(20, 7), field, Buffer.alloc(20, 7)])
  for (let at = 0; at <= message.length; at++) {
    const parts = [
      record(handshake, message.subarray(0, at)),
      record(alert, field),
      record(handshake, message.subarray(at)),
    ]
    expect(() => read(Buffer.concat(parts), 11)).toThrow(expect.objectContaining({ code: 'ERR_TLS_EXPLICIT_CURVE' }))
  }
  // Of an alert, and of the OID of keys of all curves.
  const others = [record(alert, field), record(handshake, Buffer.from('06072a8648ce3d0201', 'hex'))]
  expect(read(Buffer.concat(others), 11)).toEqual(others)
})

test.each([
  ['text', Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')],
  ['a record that is larger than TLS allows', record(handshake, Buffer.alloc(20_000))],
  ['encrypted bytes before there is a key', record(23, Buffer.alloc(100))],
])('what is no handshake is given to nobody: %s', (_, bytes) => {
  expect(() => read(bytes, 10)).toThrow(expect.objectContaining({ code: 'ERR_TLS_UNREADABLE_HANDSHAKE' }))
})
