import { afterAll, beforeAll, expect, test } from 'vitest'
import { call } from './setup/client.ts'
import { type CoreProxy, startCoreProxy } from './setup/core-proxy.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'

/** A core that is newer than its gateway, as during an upgrade, may answer with codes that the gateway does not know. */

let system: System
let newerCore: CoreProxy
beforeAll(async () => {
  system = await startSystem({ gateways: 0 })
  newerCore = await startCoreProxy(
    { url: system.coreUrl, token: system.gatewayToken },
    {
      // The byte before a string of MessagePack is its length. Without it, a random secret may contain the same letters.
      changeAnswer: body => Buffer.from(body.toString('latin1').replaceAll('\xa4W001', '\xa4W099'), 'latin1'),
    },
  )
  await system.startGateway({ CORE_URL: newerCore.url })
})
afterAll(async () => {
  await system.stop()
  newerCore.close()
})

test.each(['', 'zh-CN'])(
  'an unknown code of core is S001 in the envelope, and logged: Accept-Language %j',
  async locale => {
    const gateway = system.gateways[0]!
    const credentials = { ...system, baseUrl: gateway.url }
    const path = '/api/v1/wallets/wal_01h455vb4pex5vsknk084sn02q'
    const headers = { 'Accept-Language': locale }
    const { status, body } = await call(credentials, 'GET', path, undefined, { headers })
    expect([status, body]).toMatchObject([
      500,
      { version: '1.3.0', success: false, code: 'S001', message: 'INTERNAL_ERROR', data: null },
    ])
    expect('detail' in body).toBe(locale !== '')
    await until('the log names the code', () => gateway.output().includes('"unknownCode":"W099"'))
  },
)
