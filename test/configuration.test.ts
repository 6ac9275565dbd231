import { spawnSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { makeTempDir } from './setup/temp.ts'

const core = 'services/core/src/main.ts'
const migrate = 'services/core/src/migrate.ts'
const courier = 'services/courier/src/main.ts'
const gateway = 'gateway/src/main.ts'

const kek = `k1:${Buffer.alloc(32, 1).toString('base64')}`
const goodCore = {
  DATABASE_URL: 'postgresql://service:secret@127.0.0.1:1/wallet',
  KEY_ENCRYPTION_KEYS: kek,
  LEDGER_CHAIN_KEY: Buffer.alloc(32, 2).toString('base64'),
  RECEIPT_KEYS: `r1:${Buffer.alloc(32, 3).toString('base64')}`,
  SERVICE_TOKENS: `gateway:gateway:${'t'.repeat(40)}`,
}

function run(program: string, environment: NodeJS.ProcessEnv) {
  const path = fileURLToPath(new URL(`../${program}`, import.meta.url))
  const { PATH, NODE_COMPILE_CACHE } = process.env
  const { status, stderr } = spawnSync(process.execPath, [path], {
    env: { PATH, NODE_COMPILE_CACHE, ...environment },
    encoding: 'utf8',
    // It only ends what hangs.
    timeout: 100_000,
  })
  return { status, lines: stderr.trim().split('\n') }
}

test('core names every missing variable, one per line', () => {
  const { status, lines } = run(core, {})
  expect(status).toBe(1)
  expect(lines.map(line => line.split(' is missing: ')[0])).toEqual([
    'DATABASE_URL',
    'KEY_ENCRYPTION_KEYS',
    'LEDGER_CHAIN_KEY',
    'RECEIPT_KEYS',
    'SERVICE_TOKENS',
  ])
})

test('core names every faulty variable at once, without their values', () => {
  const { status, lines } = run(core, {
    CORE_PORT: '99999',
    DATABASE_URL: 'mysql://root:hunter2@localhost/wallet',
    KEY_ENCRYPTION_KEYS: 'k1:c2hvcnQ=',
    LEDGER_CHAIN_KEY: 'hunter2',
    LEDGER_SHARDS: '0',
    LOG_LEVEL: 'loud',
    RECEIPT_KEYS: 'r1:hunter2',
    SERVICE_TOKENS: 'gateway:king:hunter2',
  })
  expect(status).toBe(1)
  expect(lines.map(line => line.split(' ')[0])).toEqual([
    'CORE_PORT',
    'DATABASE_URL',
    'KEY_ENCRYPTION_KEYS',
    'LEDGER_CHAIN_KEY',
    'LEDGER_SHARDS',
    'LOG_LEVEL',
    'RECEIPT_KEYS',
    'SERVICE_TOKENS',
  ])
  expect(lines.join()).not.toContain('hunter2')
})

test('a token or key that contains a colon is rejected, not truncated', () => {
  const token = `${'t'.repeat(40)}:${'u'.repeat(40)}`
  const { lines } = run(core, { ...goodCore, KEY_ENCRYPTION_KEYS: `${kek}:x`, SERVICE_TOKENS: `a:admin:${token}` })
  expect(lines.map(line => line.split(' needs entries ')[0])).toEqual(['KEY_ENCRYPTION_KEYS', 'SERVICE_TOKENS'])
})

test('the gateway names every missing variable, and does not start without a nonce store', () => {
  const missing = run(gateway, {})
  expect(missing.status).toBe(1)
  expect(missing.lines.map(line => line.split(' ')[0])).toEqual(['CORE_TOKEN', 'CORE_URL', 'KEY_ENCRYPTION_KEYS'])
  const { status, lines } = run(gateway, {
    CORE_TOKEN: 't'.repeat(40),
    CORE_URL: 'http://127.0.0.1:1',
    KEY_ENCRYPTION_KEYS: kek,
  })
  expect([status, lines]).toEqual([
    1,
    [
      'REDIS_URL is missing: Redis that stores the nonces of all gateways: a URL with redis://, redis+sentinel:// or redis+cluster://, or rediss for TLS.',
    ],
  ])
})

test('the gateway rejects a malformed list of proxies', () => {
  const { status, lines } = run(gateway, { TRUSTED_PROXIES: '10.0.0.0/8,10.0.0.300' })
  expect(status).toBe(1)
  expect(lines.find(line => line.startsWith('TRUSTED_PROXIES'))).toContain('10.0.0.300')
})

test('the courier names every missing variable, and rejects a malformed list of networks', () => {
  const missing = run(courier, {})
  expect(missing.status).toBe(1)
  expect(missing.lines.map(line => line.split(' ')[0])).toEqual(['CORE_TOKEN', 'CORE_URL'])
  const { status, lines } = run(courier, { WEBHOOK_ALLOWED_NETWORKS: '10.0.0.0/8,10.1' })
  expect(status).toBe(1)
  expect(lines.find(line => line.startsWith('WEBHOOK_ALLOWED_NETWORKS'))).toContain('10.1')
})

test('the migration rejects a service role that is the owner of the tables', () => {
  const { status, lines } = run(migrate, {
    DATABASE_URL: 'postgresql://owner:a@127.0.0.1:1/wallet',
    MIGRATION_DATABASE_URL: 'postgresql://owner:b@127.0.0.1:1/wallet',
  })
  expect(status).toBe(1)
  expect(lines[0]).toContain('the service must not own its tables')
})

test('a secret can come from a file, which must be readable; setting both variables is an error', async () => {
  const directory = await makeTempDir('configuration')
  const file = join(directory, 'tokens')
  await writeFile(file, 'short')
  const read = run(core, { ...goodCore, SERVICE_TOKENS: '', SERVICE_TOKENS_FILE: file })
  expect(read.lines[0]).toMatch(/^SERVICE_TOKENS needs entries/)
  const unreadable = run(core, { ...goodCore, SERVICE_TOKENS: '', SERVICE_TOKENS_FILE: `${file}.none` })
  expect(unreadable.lines).toEqual([
    `SERVICE_TOKENS_FILE names ${file}.none, which cannot be read: check that it exists, and its permissions.`,
  ])
  const twice = run(core, { ...goodCore, SERVICE_TOKENS_FILE: file })
  expect(twice.lines).toEqual(['SERVICE_TOKENS and SERVICE_TOKENS_FILE are both set: unset one of them.'])
})
