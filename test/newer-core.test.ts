import { once } from 'node:events'
import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { call } from './setup/client.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'

/** A core that is newer than its gateway, as in an upgrade: it may answer what the gateway does not know. */

let system: System
let newerCore: Server
beforeAll(async () => {
  system = await startSystem({ gateways: 0 })
  newerCore = createServer((incoming, outgoing) => {
    const { method, url, headers } = incoming
    const onward = request(new URL(url!, system.coreUrl), { method, headers: { ...headers } }, async answer => {
      const chunks = await answer.toArray()
      const text = Buffer.concat(chunks).toString('latin1').replaceAll('W001', 'W099')
      outgoing.writeHead(answer.statusCode!, answer.headers).end(Buffer.from(text, 'latin1'))
    })
    onward.on('error', () => outgoing.destroy())
    incoming.pipe(onward)
  })
  newerCore.listen(0, '127.0.0.1')
  await once(newerCore, 'listening')
  const { port } = newerCore.address() as AddressInfo
  await system.startGateway({ CORE_URL: `http://127.0.0.1:${port}` })
})
afterAll(async () => {
  await system.stop()
  newerCore.close()
})

test.each([undefined, 'zh-CN'])(
  'a code that it does not know is S001 in our envelope, and logged: %s',
  async locale => {
    const gateway = system.gateways[0]!
    const credentials = { ...system, baseUrl: gateway.url }
    const path = '/api/v1/wallets/wal_01h455vb4pex5vsknk084sn02q'
    const headers = locale === undefined ? {} : { 'X-LOCALE': locale }
    const { status, body } = await call(credentials, 'GET', path, undefined, { headers })
    expect([status, body]).toMatchObject([
      500,
      { version: '1.3.0', success: false, code: 'S001', message: 'INTERNAL_ERROR', data: null },
    ])
    expect('detail' in body).toBe(locale !== undefined)
    await until('the log names the code', () => gateway.output().includes('"unknownCode":"W099"'))
  },
)
