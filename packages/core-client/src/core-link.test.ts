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
    const exchange = new Exchange(twoMegabytes, 40, () => {})
    link.send(exchange)
    return exchange.answers
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

describe('answers with more than core sends', () => {
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
  const send = (link: CoreLink) => {
    const exchange = new Exchange(Buffer.of(0x90), 40, () => {})
    link.send(exchange)
    return exchange.answers
  }
  const answers = (count: number) => packBatch(Array.from({ length: count }, () => ({ data: 1 })))

  test('too many values fail the exchange, and the connection carries others', async () => {
    const frames = [answers(200), answers(20)].map((body, at) => packFrame(frameKinds.answers, at + 1, body))
    const link = await openLink(frames)
    const [first, second] = [send(link), send(link)]
    await expect(first).rejects.toThrow('sent more than core does')
    expect(await second).toHaveLength(20)
    expect(link.isOpen).toBe(true)
  })

  test.each([
    ['answers', frameKinds.answers, 100_001],
    ['a rejection', frameKinds.rejection, 65_537],
  ] as const)('%s with too many bytes are not read: the connection is closed', async (_, kind, bytes) => {
    const link = await openLink([packFrame(kind, 1, Buffer.alloc(bytes)).subarray(0, 1_000)])
    await expect(send(link)).rejects.toThrow('sent more than core does')
    expect(link.isClosed).toBe(true)
  })
})
