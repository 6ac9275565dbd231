import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterEach, expect, test, vi } from 'vitest'
import { until } from '../../../test/setup/until.ts'
import { senderByNetwork, UnreadAnswers } from './unread-answers.ts'

/** Much more than the kernel takes. */
const answer = Buffer.alloc(16 * 2 ** 20)

const sockets: Socket[] = []
afterEach(() => {
  vi.useRealTimers()
  for (const socket of sockets.splice(0)) socket.destroy()
})

/** A connection whose client reads nothing until it is resumed. */
async function open(answers: UnreadAnswers, sender = 'one') {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1').pause()
  const [socket] = (await once(server, 'connection')) as [Socket]
  server.close()
  for (const each of [client, socket]) each.on('error', () => {})
  sockets.push(client, socket)
  answers.watch(socket, { sender: () => sender, weigh: () => socket.writableLength })
  return { client, socket }
}

test('the connection is closed of which nothing was read for longest, however old the others are', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
  const answers = new UnreadAnswers(createHttpServer(), { limitBytes: 2.5 * answer.length, senderOf: senderByNetwork })
  const reading = await open(answers)
  const stalled = await open(answers)
  const later = await open(answers)
  reading.socket.write(answer)
  stalled.socket.write(answer)
  vi.advanceTimersByTime(500)
  expect(answers.closed).toBe(0)

  // As much waits again, but it is another answer.
  reading.client.resume()
  await until('the answer was read', () => reading.socket.writableLength === 0)
  reading.client.pause()
  reading.socket.write(answer)
  later.socket.write(answer)
  vi.advanceTimersByTime(500)

  expect([reading, stalled, later].map(({ socket }) => socket.destroyed)).toEqual([false, true, false])
  expect(answers.closed).toBe(1)
})

test('a client that reads nothing, and causes more answers, is not taken for one that reads', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
  const answers = new UnreadAnswers(createHttpServer(), { limitBytes: 2.5 * answer.length, senderOf: senderByNetwork })
  const growing = await open(answers)
  const later = await open(answers)
  growing.socket.write(answer)
  vi.advanceTimersByTime(500)
  later.socket.write(answer)
  for (let count = 0; count < 4; count++) {
    growing.socket.write(Buffer.alloc(1000))
    vi.advanceTimersByTime(500)
  }
  growing.socket.write(answer)
  vi.advanceTimersByTime(500)
  expect([growing, later].map(({ socket }) => socket.destroyed)).toEqual([true, false])
})

test('a sender who reads nothing costs no other one a connection', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
  const answers = new UnreadAnswers(createHttpServer(), { limitBytes: 2.5 * answer.length, senderOf: senderByNetwork })
  const slow = await open(answers, 'slow')
  slow.socket.write(answer)
  vi.advanceTimersByTime(500)
  const greedy = [await open(answers, 'greedy'), await open(answers, 'greedy')]
  for (const { socket } of greedy) socket.write(answer)
  vi.advanceTimersByTime(500)
  expect([slow, ...greedy].map(({ socket }) => socket.destroyed)).toEqual([false, true, false])
})

test('an answer of which nothing is read is closed after half a minute', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
  const answers = new UnreadAnswers(createHttpServer(), { limitBytes: 2.5 * answer.length, senderOf: senderByNetwork })
  const { socket } = await open(answers)
  socket.write(answer)
  vi.advanceTimersByTime(29_000)
  expect(socket.destroyed).toBe(false)
  vi.advanceTimersByTime(2_000)
  expect(socket.destroyed).toBe(true)
})

test('an answer that waits behind another one counts, and closes their connection when it is too much', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
  const server = createHttpServer((request, response) => {
    if (request.url === '/first') response.write('not all of it')
    else response.end(answer)
  }).listen(0, '127.0.0.1')
  const answers = new UnreadAnswers(server, { limitBytes: 2.5 * answer.length, senderOf: senderByNetwork })
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {})
  sockets.push(client)
  const closed = once(client.resume(), 'close')
  const requests = ['/first', '/', '/', '/'].map(path => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
  client.write(requests.join(''))
  await until('three answers wait', () => answers.bytes > 2.9 * answer.length)
  vi.advanceTimersByTime(500)
  await closed
  await until('nothing waits', () => answers.bytes === 0)
  server.close()
})
