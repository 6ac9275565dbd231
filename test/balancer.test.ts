/** The limits of the load balancer, in front of a gateway that answers every request. */
import { createServer, type Server } from 'node:http'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Balancer, startBalancer } from './setup/balancer.ts'
import { listen } from './setup/listen.ts'
import { makeTempDir } from './setup/temp.ts'
import { until } from './setup/until.ts'

let gateway: Server
let balancer: Balancer
const sockets: Socket[] = []
beforeAll(async () => {
  gateway = createServer((_request, response) => response.end('served'))
  const host = `127.0.0.1:${await listen(gateway)}`
  const hosts = { 'gateway-1:8080': host, 'gateway-2:8080': host }
  balancer = await startBalancer(hosts, await makeTempDir('balancer'), { CONNECTIONS_PER_SOURCE: '3' })
})
afterAll(async () => {
  for (const socket of sockets) socket.destroy()
  await balancer.stop()
  gateway.close()
  gateway.closeAllConnections()
})

const request = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'

/** Opens a connection and sends a request. Resolves with the connection, or null when it is closed without an answer. */
function open(localAddress: string): Promise<Socket | null> {
  const { hostname, port } = new URL(balancer.url)
  return new Promise(resolve => {
    const socket = connect({ port: Number(port), host: hostname, localAddress })
    sockets.push(socket)
    socket.write(request)
    socket.once('data', () => resolve(socket))
    socket.on('error', () => resolve(null))
    socket.once('close', () => resolve(null))
  })
}

test('one address cannot exceed its limit of connections, and the connections of other addresses are accepted', async () => {
  const held = [await open('127.0.0.1'), await open('127.0.0.1'), await open('127.0.0.1')]
  for (const socket of held) expect(socket).not.toBeNull()
  expect(await open('127.0.0.1')).toBeNull()
  expect(await open('127.0.0.2')).not.toBeNull()
  held[0]!.destroy()
  await until('the address can connect again', async () => (await open('127.0.0.1')) !== null)
})

test('a connection cannot switch to HTTP/2', async () => {
  const { hostname, port } = new URL(balancer.url)
  const socket = connect({ port: Number(port), host: hostname, localAddress: '127.0.0.5' })
  sockets.push(socket)
  socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 400 /)
})

test('a load balancer that stops, like the old process after a reload, serves the connections that it has', async () => {
  const socket = (await open('127.0.0.3'))!
  process.kill(balancer.pid, 'SIGUSR1')
  await until('it accepts no new connections', async () => (await open('127.0.0.4')) === null)
  const answer = await new Promise<string>((resolve, reject) => {
    socket.once('data', data => resolve(String(data)))
    socket.once('close', () => reject(new Error('the connection was closed without an answer')))
    socket.write(request)
  })
  expect(answer).toMatch(/^HTTP\/1\.1 200 /)
  expect(answer).toMatch(/^connection: close\r$/im)
})
