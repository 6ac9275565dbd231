import { execFile } from 'node:child_process'
import { createHash, createHmac, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { makeTempDir } from '../../test/setup/temp.ts'
import { banner } from './banner.ts'
import type { Demo } from './demo.ts'
import { writePrivateJson } from './private-file.ts'

/** Section 5.2 of the specification, independently of the shell code under test. */
function expectedSignature(request: IncomingMessage, secret: string): string {
  const emptyBody = createHash('sha256').update('').digest('hex')
  const { 'x-timestamp': time, 'x-nonce': nonce } = request.headers
  const message = [request.method, request.url, time, nonce, emptyBody].join('\n')
  return createHmac('sha256', secret).update(message).digest('base64')
}

test('the call in the banner can be pasted into bash and has a valid signature', async () => {
  const demoFile = join(await makeTempDir('banner'), `it's a "directory"`, 'demo.json')
  await mkdir(join(demoFile, '..'))
  const server = createServer((request, response) => {
    const isValid = request.headers['x-signature'] === expectedSignature(request, demo.apiSecret)
    response.end(`${request.headers['x-api-key']} ${isValid}`)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const demo: Demo = {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    coreUrl: 'http://127.0.0.1:1',
    workspaceId: 'wsp_1',
    apiKey: 'ak_1',
    apiSecret: randomBytes(32).toString('base64url'),
    wallets: [],
  }
  await writePrivateJson(demoFile, demo)
  try {
    const text = banner(demo, false, demoFile, '/data', true)
    const pasted = text.slice(text.indexOf('\n(\n'), text.indexOf('\n)\n') + 3)
    // Each nonce gives another signature; some contain characters that a shell treats specially.
    for (let round = 0; round < 5; round++) {
      const { stdout } = await promisify(execFile)('bash', ['-c', pasted])
      expect(stdout).toBe('ak_1 true\n')
    }
  } finally {
    server.close()
  }
})

test('the banner contains the secret on the first start only', () => {
  const demo = { baseUrl: '', coreUrl: '', workspaceId: '', apiKey: 'ak_1', apiSecret: 'the-secret', wallets: [] }
  expect(banner(demo, true, '/demo.json', '/data', true)).toContain('the-secret')
  expect(banner(demo, false, '/demo.json', '/data', true)).not.toContain('the-secret')
})
