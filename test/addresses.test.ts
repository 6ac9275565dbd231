import { isListed, parseAddress, parseAddressList, parseBlock } from '@workspace-wallet/runtime'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { clientAddress } from '../gateway/src/network/client-address.ts'
import { call, signedHeaders } from './setup/client.ts'
import { exchange, requestText } from './setup/raw-http.ts'
import { type System, startSystem } from './setup/system.ts'
import { createKey } from './setup/workspaces.ts'

/** Section 5.3, step 7: the address of a client, and the IP list of a key. */

let system: System
beforeAll(async () => {
  system = await startSystem({ gateways: 1 })
  await system.startGateway({ TRUSTED_PROXIES: '127.0.0.0/8,2001:db8::/32' })
})
afterAll(() => system.stop())

test.each([
  ['203.0.113.7', '203.0.113.7', true],
  ['203.0.113.7', '203.0.113.8', false],
  ['203.0.113.0/24', '203.0.113.255', true],
  ['203.0.113.0/24', '203.0.114.0', false],
  ['0.0.0.0/0', '198.51.100.1', true],
  ['0.0.0.0/0', '2001:db8::1', false],
  ['2001:db8::/32', '2001:db8:ffff::1', true],
  ['2001:db8::/32', '2001:db9::1', false],
  ['2001:DB8:0:0:0:0:0:1', '2001:db8::1', true],
  ['::/0', '203.0.113.7', false],
  ['203.0.113.7', '::ffff:203.0.113.7', true],
  ['203.0.113.7', '::ffff:cb00:7107', true],
  ['::ffff:203.0.113.7', '203.0.113.7', true],
  ['::ffff:203.0.113.0/120', '203.0.113.99', true],
  // Another address, whose form is deprecated (RFC 4291, section 2.5.5.1).
  ['203.0.113.7', '::203.0.113.7', false],
  ['::203.0.113.7', '203.0.113.7', false],
  ['::203.0.113.0/120', '::cb00:7107', true],
  ['10.0.0.1/32', '10.0.0.1', true],
])('whether the entry %s contains the address %s: %s', (entry, address, isIn) => {
  expect(isListed(parseAddress(address)!, [parseBlock(entry)])).toBe(isIn)
})

test.each([
  '',
  '10.0.0',
  '10.0.0.256',
  '10.0.0.0/33',
  '10.0.0.0/-1',
  '10.0.0.0/',
  '::/129',
  'localhost',
  '10.0.0.1 ',
  '010.0.0.1x',
])('a malformed entry is rejected: "%s"', async entry => {
  expect(() => parseBlock(entry)).toThrow('neither an IP address nor a CIDR block')
  await expect(
    system.admin.apiKeys.setIps.mutate({ apiKey: system.apiKey, ipAllowlist: ['10.0.0.1', entry] }),
  ).rejects.toThrow('neither an IP address nor a CIDR block')
})

const proxies = parseAddressList('10.0.0.0/8, 2001:db8::/32')

test.each([
  ['without trusted proxies the header is ignored', '203.0.113.9', '1.1.1.1', [], '203.0.113.9'],
  ['the header of a client that is not a trusted proxy is ignored', '203.0.113.9', '1.1.1.1', proxies, '203.0.113.9'],
  ['the nearest hop that is not a proxy is the client', '10.0.0.1', '1.1.1.1, 203.0.113.9', proxies, '203.0.113.9'],
  ['trusted hops are skipped', '10.0.0.1', '1.1.1.1, 203.0.113.9, 10.0.0.2', proxies, '203.0.113.9'],
  ['a spoofed first entry is not used', '10.0.0.1', '10.9.9.9, 203.0.113.9', proxies, '203.0.113.9'],
  ['a hop that is not an address ends the search', '10.0.0.1', '203.0.113.9, nonsense', proxies, '10.0.0.1'],
  ['without the header the proxy is the client', '10.0.0.1', undefined, proxies, '10.0.0.1'],
  ['if all hops are proxies, the first one is the client', '10.0.0.1', '10.0.0.3, 10.0.0.2', proxies, '10.0.0.3'],
  ['at most 32 hops are read', '10.0.0.1', `203.0.113.9${', 10.0.0.2'.repeat(32)}`, proxies, '10.0.0.2'],
  ['IPv4-mapped addresses are IPv4 addresses', '::ffff:10.0.0.1', '::ffff:203.0.113.9', proxies, '203.0.113.9'],
  ['proxies may have IPv6 addresses', '2001:db8::1', '2001:db9::7', proxies, '2001:db9::7'],
] as const)('%s', (_name, socket, header, trusted, client) => {
  expect(clientAddress(socket, header, trusted)).toBe(client)
})

test('X-Forwarded-For gives no access on a gateway without trusted proxies, and is read behind one', async () => {
  const key = await createKey(system, { ipAllowlist: ['203.0.113.0/24'] })
  const [direct, proxied] = system.gateways
  const codeOf = async (baseUrl: string, forwardedFor: string) => {
    const headers = { 'X-Forwarded-For': forwardedFor }
    return (await call({ ...key, baseUrl }, 'GET', '/api/v1/wallets', undefined, { headers })).body.code
  }
  expect(await codeOf(direct!.url, '203.0.113.9')).toBe('GA2022')
  expect(await codeOf(proxied!.url, '203.0.113.9')).toBe('2000')
  expect(await codeOf(proxied!.url, '203.0.113.9, 198.51.100.1')).toBe('GA2022')
  expect(await codeOf(proxied!.url, '198.51.100.1, 203.0.113.9, 127.0.0.1')).toBe('2000')
  expect(await codeOf(proxied!.url, '::ffff:203.0.113.9')).toBe('2000')
})

test('a target in absolute form is signed and routed by its path', async () => {
  const path = '/api/v1/wallets'
  const headers = await signedHeaders(system, 'GET', path, undefined)
  const target = `http://elsewhere.example${path}?size=1`
  const text = await exchange(system.baseUrl, requestText('GET', target, headers, ['Connection: close']))
  expect(text).toMatch(/^HTTP\/1\.1 200 /)
  expect(text).toContain('"size":1')
})
