import { createServer } from 'node:http'
import { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { limitConnections } from './connection-limit.ts'

test('a connection that its client has reset before it is accepted, and so has no address, serves no request', () => {
  const server = createServer()
  limitConnections(server, 10)
  const socket = new Socket()
  expect(socket.remoteAddress).toBeUndefined()
  server.emit('connection', socket)
  expect(socket.destroyed).toBe(true)
})
