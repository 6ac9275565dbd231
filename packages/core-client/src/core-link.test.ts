import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { packBatch } from '@workspace-wallet/contract'
import { frameKinds, packFrame } from '@workspace-wallet/runtime/batch-frames'
import { describe, expect, onTestFinished, test } from 'vitest'
import { defaultAnswerLimits } from './answer-limits.ts'
import { CoreLink } from './core-link.ts'
import { CoreUnreachable } from './errors.ts'
import { Exchange } from './exchange.ts'

const twoMegabytes = Buffer.alloc(2 * 1024 * 1024)

test('a connection whose server never reads is closed once much waits for it', async () => {
  const accepted: Socket[] = []
  const server = createServer({ pauseOnConnect: true }, socket => accepted.push(socket)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  const link = new CoreLink(`http://127.0.0.1:${port}`, socket, Buffer.alloc(0), defaultAnswerLimits)
  const send = () => {
    const exchange = new Exchange({ body: twoMegabytes, calls: 1, onAnswer() {} }, 40, () => {})
    link.send(exchange)
    return exchange.done
  }
  const first = send()
  first.catch(() => {})
  link.tick()
  expect(link.isClosed).toBe(false)
  for (let count = 0; count < 40; count++) send().catch(() => {})
  link.tick()
  expect(link.isClosed).toBe(true)
  await expect(first).rejects.toThrow(CoreUnreachable)
  for (const each of accepted) each.destroy()
  server.close()
})

/** A connection to a core that answers the first frame with these. */
async function openLink(frames: Buffer[]) {
  const server = createServer(socket => socket.once('data', () => socket.write(Buffer.concat(frames))))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  await once(socket, 'connect')
  const link = new CoreLink('http://core', socket, Buffer.alloc(0), { bytes: 100_000, values: 100 })
  onTestFinished(() => {
    socket.destroy()
    server.close()
  })
  return link
}

/** Sends a batch. `answers`: by the index of their call. */
function send(link: CoreLink, calls: number) {
  const answers: unknown[] = []
  const onAnswer = (at: number, answer: unknown) => {
    answers[at] = answer
  }
  const exchange = new Exchange({ body: Buffer.of(0x90), calls, onAnswer }, 40, each => each.link?.forget(each))
  link.send(exchange)
  return { answers, done: exchange.done }
}

const answersOf = (data: readonly unknown[]) => data.map(each => ({ data: each }))
const partFrame = (calls: number[], data: readonly unknown[] = calls) =>
  packFrame(frameKinds.part, 1, packBatch({ calls, answers: answersOf(data) }))
const restFrame = (data: readonly unknown[]) => packFrame(frameKinds.answers, 1, packBatch(answersOf(data)))

describe('answers in parts', () => {
  test('go to their calls, and the rest to the others in order', async () => {
    const link = await openLink([partFrame([4, 1]), partFrame([0]), restFrame([2, 3])])
    const { answers, done } = send(link, 5)
    await done
    expect(answers).toEqual(answersOf([0, 1, 2, 3, 4]))
    expect(link.isBusy).toBe(false)
  })

  test.each([
    ['a call that the batch does not have', partFrame([3])],
    ['no whole number', partFrame(['0' as never])],
    ['no call', partFrame([])],
    ['all calls', partFrame([0, 1, 2])],
    ['a call twice', partFrame([1, 1])],
    ['a call that has its answer', Buffer.concat([partFrame([0]), partFrame([0])])],
    ['more calls than answers', partFrame([0, 1], [0])],
    ['no lists', packFrame(frameKinds.part, 1, packBatch({ calls: 1, answers: 2 } as never))],
    ['nothing', packFrame(frameKinds.part, 1, packBatch(null as never))],
    ['no MessagePack', packFrame(frameKinds.part, 1, Buffer.of(0xc1))],
  ])('a part that names %s is not from core: the calls without an answer fail', async (_, frames) => {
    const link = await openLink([frames, restFrame([1, 2, 3])])
    await expect(send(link, 3).done).rejects.toThrow('so it is not core')
  })

  test('too many values in one fail the exchange', async () => {
    const link = await openLink([partFrame(Array.from({ length: 200 }, (_, at) => at))])
    await expect(send(link, 300).done).rejects.toThrow('sent more than core does')
  })

  test('too many values in all of them fail the exchange', async () => {
    const link = await openLink(Array.from({ length: 20 }, (_, at) => partFrame([at])))
    const { answers, done } = send(link, 300)
    await expect(done).rejects.toThrow('sent more than core does')
    expect(answers.length).toBeGreaterThan(5)
  })

  test('too many bytes in all of them are not read: the connection is closed', async () => {
    const link = await openLink([0, 1, 2].map(at => partFrame([at], ['x'.repeat(40_000)])))
    const { answers, done } = send(link, 300)
    await expect(done).rejects.toThrow('sent more than core does')
    expect(answers).toHaveLength(2)
    expect(link.isClosed).toBe(true)
  })
})

test('large answers that arrive at once leave other connections a turn of the event loop between them', async () => {
  const ids = [1, 2, 3, 4]
  const frames = ids.map(id => packFrame(frameKinds.answers, id, packBatch([{ data: 'x'.repeat(70_000) }])))
  const link = await openLink(frames)
  let turn = 0
  let next = setImmediate(function count() {
    turn++
    next = setImmediate(count)
  })
  onTestFinished(() => clearImmediate(next))
  const turns: number[] = []
  const exchanges = ids.map(() => {
    const exchange = new Exchange({ body: Buffer.of(0x90), calls: 1, onAnswer: () => turns.push(turn) }, 40, () => {})
    link.send(exchange)
    return exchange.done
  })
  await Promise.all(exchanges)
  expect(new Set(turns).size).toBe(ids.length)
})

describe('answers with more than core sends', () => {
  const answers = (count: number) => packBatch(Array.from({ length: count }, () => ({ data: 1 })))

  test('too many values fail the exchange, and the connection carries others', async () => {
    const frames = [answers(200), answers(20)].map((body, at) => packFrame(frameKinds.answers, at + 1, body))
    const link = await openLink(frames)
    const [first, second] = [send(link, 200), send(link, 20)]
    await expect(first.done).rejects.toThrow('sent more than core does')
    await second.done
    expect(second.answers).toHaveLength(20)
    expect(link.isOpen).toBe(true)
  })

  test.each([
    ['answers', frameKinds.answers, 100_001],
    ['a part', frameKinds.part, 100_001],
    ['a rejection', frameKinds.rejection, 65_537],
  ] as const)('%s with too many bytes are not read: the connection is closed', async (_, kind, bytes) => {
    const link = await openLink([packFrame(kind, 1, Buffer.alloc(bytes)).subarray(0, 1_000)])
    await expect(send(link, 1).done).rejects.toThrow('sent more than core does')
    expect(link.isClosed).toBe(true)
  })
})
