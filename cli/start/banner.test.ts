import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Credentials, signedHeaders } from '@workspace-wallet/client'
import { expect, test } from 'vitest'
import { makeTempDir } from '../../test/setup/temp.ts'
import { banner } from './banner.ts'
import type { Demo } from './demo.ts'
import { writePrivateJson } from './private-file.ts'

/** Section 5.2 of the specification, independently of the shell code under test. */
async function expectedSignature({ method, url, headers }: IncomingMessage, credentials: Credentials): Promise<string> {
  const [timestamp, nonce] = [String(headers['x-timestamp']), String(headers['x-nonce'])]
  const signed = await signedHeaders(credentials, { method: method!, target: url!, timestamp, nonce })
  return signed['X-Signature']
}

test('the call in the banner can be pasted into bash and has a valid signature', async () => {
  const demoFile = join(await makeTempDir('banner'), `it's a "directory"`, 'demo.json')
  await mkdir(join(demoFile, '..'))
  const server = createServer(async (request, response) => {
    const isValid = request.headers['x-signature'] === (await expectedSignature(request, demo))
    response.end(`${request.headers['x-api-key']} ${request.headers['x-locale']} ${isValid}`)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const demo: Demo = {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    coreUrl: 'http://127.0.0.1:1',
    consoleUrl: 'http://127.0.0.1:2/console',
    adminToken: randomBytes(32).toString('base64url'),
    workspaceId: 'wsp_1',
    apiKey: 'ak_1',
    apiSecret: randomBytes(32).toString('base64url'),
    wallets: [],
  }
  await writePrivateJson(demoFile, demo)
  try {
    const text = banner(demo, false, demoFile, '/data', { docs: true, console: true })
    const pasted = text.slice(text.indexOf('\n(\n'), text.indexOf('\n)\n') + 3)
    // Each nonce gives another signature; some contain characters that a shell treats specially.
    for (let round = 0; round < 5; round++) {
      const { stdout } = await promisify(execFile)('bash', ['-c', pasted])
      expect(stdout).toBe('ak_1 en-US true\n')
    }
  } finally {
    server.close()
  }
})

test('the banner contains the secret on the first start only', () => {
  const addresses = { baseUrl: '', coreUrl: '', consoleUrl: 'http://127.0.0.1:2/console' }
  const demo = {
    ...addresses,
    adminToken: 'the-token',
    workspaceId: '',
    apiKey: 'ak_1',
    apiSecret: 'the-secret',
    wallets: [],
  }
  const has = { docs: true, console: true }
  expect(banner(demo, true, '/demo.json', '/data', has)).toContain('the-secret')
  const later = banner(demo, false, '/demo.json', '/data', has)
  expect(later).not.toContain('the-secret')
  expect(later).toContain(demo.consoleUrl)
  expect(later).not.toContain(demo.adminToken)
  expect(banner(demo, false, '/demo.json', '/data', { docs: true, console: false })).not.toContain(demo.consoleUrl)
})
