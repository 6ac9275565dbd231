import { request } from 'node:http'
import { createServer } from 'node:net'
import { expect, test } from 'vitest'
import { listen } from '../../../test/setup/listen.ts'
import { wasNeverSent } from './request-failures.ts'

function failureOf(url: string): Promise<unknown> {
  return new Promise(resolve => request(url, { method: 'POST', agent: false }).on('error', resolve).end('create'))
}

test.each(['127.0.0.1', 'localhost'])('nothing was sent to a port of %s on which no server listens', async host => {
  // The system gives this port to no program.
  expect(wasNeverSent(await failureOf(`http://${host}:2`))).toBe(true)
})

test('a request may have been read if its connection was reset', async () => {
  const server = createServer(socket => socket.once('data', () => socket.resetAndDestroy()))
  expect(wasNeverSent(await failureOf(`http://127.0.0.1:${await listen(server)}`))).toBe(false)
  server.close()
})

test.each([
  ['EHOSTUNREACH', 'read'],
  ['ETIMEDOUT', 'read'],
  ['ENETUNREACH', 'write'],
])('%s on an established connection: the request may have been read', (code, syscall) => {
  expect(wasNeverSent(Object.assign(new Error(), { code, syscall }))).toBe(false)
  expect(wasNeverSent(Object.assign(new Error(), { code, syscall: 'connect' }))).toBe(true)
})
