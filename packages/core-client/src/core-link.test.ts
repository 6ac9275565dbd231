import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { expect, test } from 'vitest'
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
  const link = new CoreLink(`http://127.0.0.1:${port}`, socket, Buffer.alloc(0))
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
