import { expect, test } from 'vitest'
import { type FrameHead, type FrameKind, FrameReader, frameKinds, packFrame } from './batch-frames.ts'

const bodies = ['', 'a', 'b'.repeat(300), 'c'.repeat(5_000), ''].map(text => Buffer.from(text))
const kinds = Object.values(frameKinds)
const stream = Buffer.concat(bodies.map((body, at) => packFrame(kinds[at]!, at * 2 ** 28, body)))

/** The frames that arrive, and what was reserved for their bodies. */
function collect(onHead: (head: FrameHead) => boolean = () => true) {
  const frames: { kind: FrameKind; id: number; body: string }[] = []
  const grown: number[] = []
  const reader = new FrameReader({
    onHead,
    onGrowth(bytes) {
      grown.push(bytes)
      return true
    },
    onFrame: ({ kind, id }, body) => frames.push({ kind: kind as FrameKind, id, body: body.toString() }),
  })
  return { frames, grown, reader }
}

const expected = bodies.map((body, at) => ({ kind: kinds[at]!, id: at * 2 ** 28, body: body.toString() }))

test.each([1, 2, 7, 9, 10, 4_096, stream.length])('frames that arrive in pieces of %i bytes', size => {
  const { frames, reader } = collect()
  for (let at = 0; at < stream.length; at += size) reader.push(stream.subarray(at, at + size))
  expect(frames).toEqual(expected)
  expect(reader.isInFrame).toBe(false)
  expect(reader.frames).toBe(bodies.length)
})

test('a length that is only announced takes no memory', () => {
  const { grown, reader } = collect()
  reader.push(packFrame(frameKinds.batch, 1, Buffer.alloc(2 ** 21)).subarray(0, 20))
  expect(reader.isInFrame).toBe(true)
  expect(grown).toEqual([256])
})

test('bodies that are refused, at their head or later, are skipped; frames after them are read', () => {
  const skipped = collect(({ bytes }) => bytes !== 300)
  skipped.reader.push(stream)
  expect(skipped.frames).toEqual(expected.filter(({ body }) => body.length !== 300))

  const frames: number[] = []
  const reader = new FrameReader({
    onHead: () => true,
    onGrowth: bytes => bytes < 4_096,
    onFrame: ({ id }) => frames.push(id),
  })
  for (let at = 0; at < stream.length; at += 50) reader.push(stream.subarray(at, at + 50))
  expect(frames).toEqual([0, 1, 2, 4].map(at => at * 2 ** 28))
})

test('a paused reader keeps what has arrived', () => {
  const frames: number[] = []
  const reader: FrameReader = new FrameReader({
    onHead: () => true,
    onFrame({ id }) {
      frames.push(id)
      reader.pause()
    },
  })
  reader.push(stream)
  expect(frames).toHaveLength(1)
  expect(reader.resume()).toBe(false)
  expect(frames).toHaveLength(2)
  while (!reader.resume());
  expect(frames).toEqual(expected.map(({ id }) => id))
})
