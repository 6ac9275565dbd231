/** packages/python: its own tests, and its tests against a running service, in Python. `npm run check` checks its types. */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { endpoints } from '../gateway/src/api/endpoints.ts'
import { buildPython, findPython } from '../tools/pack/python.ts'
import { listen } from './setup/listen.ts'
import { type System, startSystem } from './setup/system.ts'
import { makeTempDir } from './setup/temp.ts'
import { createTenant, createWallet } from './setup/workspaces.ts'

const root = fileURLToPath(new URL('../', import.meta.url))
const directory = join(root, 'packages/python')
const execute = promisify(execFile)

let system: System
beforeAll(async () => {
  system = await startSystem({ coreEnvironment: { WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8' } })
})
afterAll(() => system.stop())

/** One that the package supports, with the library that verifies receipts. */
const pythonOfTests = () =>
  findPython('import sys, cryptography; assert sys.version_info >= (3, 11)', ['python3-cryptography'])

/** Runs tests of the package. Returns what unittest prints. */
async function runTests(pattern: string, environment: NodeJS.ProcessEnv = {}): Promise<string> {
  const python = await pythonOfTests()
  const args = ['-W', 'error', '-m', 'unittest', 'discover', '-s', 'tests', '-p', pattern]
  const env = { ...process.env, ...environment, PYTHONPATH: 'src', PYTHONDONTWRITEBYTECODE: '1' }
  const { stderr } = await execute(python, args, { cwd: directory, env })
  return stderr
}

test('its own tests: signing, retries, connections, deliveries and receipts', async () => {
  expect(await runTests('test_*.py')).toMatch(/^Ran \d{2,} tests/m)
})

test('it accepts exactly what the published library of Standard Webhooks signs', async () => {
  const python = await pythonOfTests()
  const secret = `whsec_${randomBytes(32).toString('base64')}`
  const body = JSON.stringify({ eventId: 'evt_1', type: 'hold.released', data: { remark: 'Grüße, 银行' } })
  const at = new Date()
  const signature = new Webhook(secret).sign('evt_1', at, body)
  const program = `
import json, sys
from workspace_wallet import WebhookVerificationError, verify_webhook
given = json.load(sys.stdin)
try:
    print(verify_webhook(**given)["eventId"])
except WebhookVerificationError as error:
    print(error.fault)`
  const headers = {
    'webhook-id': 'evt_1',
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': signature,
  }
  const verify = async (changes: object) => {
    const running = execute(python, ['-c', program], { cwd: directory, env: { ...process.env, PYTHONPATH: 'src' } })
    running.child.stdin!.end(JSON.stringify({ secret, headers, body, ...changes }))
    return (await running).stdout.trim()
  }
  expect(await verify({})).toBe('evt_1')
  expect(await verify({ body: body.replace('released', 'expired') })).toBe('SIGNATURE_INVALID')
})

test('there is a method for each endpoint, and each returns what it declares', async () => {
  const callsFile = join(await makeTempDir('python'), 'calls')
  const receiver = createServer((_, response) => response.writeHead(404).end('another server'))
  const receiverUrl = `http://127.0.0.1:${await listen(receiver)}`
  const { baseUrl, apiKey, apiSecret } = system
  try {
    const environment = { BASE_URL: baseUrl, API_KEY: apiKey, API_SECRET: apiSecret, RECEIVER_URL: receiverUrl }
    const output = await runTests('service_tests.py', { ...environment, CALLS_FILE: callsFile })
    expect(output).toMatch(/^OK$/m)
  } finally {
    receiver.close()
  }
  const called = new Set((await readFile(callsFile, 'utf8')).split('\n'))
  const isCalled = ({ method, path }: { method: string; path: string }) => {
    const pattern = new RegExp(`^${method} ${path.replaceAll(/:\w+/g, '[^/]+')}$`)
    return [...called].some(each => pattern.test(each))
  }
  expect(endpoints.filter(endpoint => !isCalled(endpoint)).map(({ path }) => path)).toEqual([])
})

test('the programs of the README print what it shows, with the wheel that `npm run pack` builds', async () => {
  const python = await pythonOfTests()
  const wheel = await buildPython(await makeTempDir('build'), await makeTempDir('wheel'))
  const installed = await makeTempDir('installed')
  await execute(python, ['-m', 'zipfile', '-e', wheel, installed])
  const readme = await readFile(join(directory, 'README.md'), 'utf8')
  const shown = [...readme.matchAll(/^```python\n(.*?)^```\n\n^```\n(.*?)^```$/gms)]
  expect(shown).toHaveLength(5)
  const program = shown.map(([, source]) => source).join('\n')
  const tenant = await createTenant(system)
  const owner = { admin: system.admin, ...tenant }
  for (const name of ['First', 'Second']) await createWallet(owner, { name, deposits: ['500.00'] })
  await createWallet(owner, { name: 'Euro', currency: 'EUR', deposits: ['1000.00'] })
  const { apiKey, apiSecret } = tenant
  const env = {
    ...process.env,
    PYTHONPATH: installed,
    BASE_URL: system.baseUrl,
    API_KEY: apiKey,
    API_SECRET: apiSecret,
  }
  const { stdout } = await execute(python, ['-c', program], { cwd: installed, env })
  expect(stdout).toBe(shown.map(([, , output]) => output).join(''))
})
