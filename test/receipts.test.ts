import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type ReceiptClaims, type ReceiptKeys, uuidFromId } from '@workspace-wallet/contract'
import { createCoreClient } from '@workspace-wallet/core-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findPrograms } from '../cli/processes/programs.ts'
import { signReceipt } from '../services/core/src/signing/jws.ts'
import { parseSigningKeys } from '../services/core/src/signing/signing-keys.ts'
import { Chromium, chromiumProgram } from './setup/chromium.ts'
import { batchPath, type Credentials, call, createPath } from './setup/client.ts'
import { execute } from './setup/database.ts'
import { logLines } from './setup/log-lines.ts'
import { readMetric } from './setup/metrics.ts'
import { javaScriptVerifier, verifierInJavaScript, verifyInPython, writeKeys } from './setup/receipt-verifiers.ts'
import { type System, startSystem } from './setup/system.ts'
import { makeTempDir } from './setup/temp.ts'
import { until } from './setup/until.ts'
import { createKey, createTenant, createWallet } from './setup/workspaces.ts'

/** Receipts over HTTP: what they say, who can verify them, and what becomes of them when keys or the ledger change. */

let system: System
let tenant: Credentials & { workspaceId: string }
let source: string
let target: string
beforeAll(async () => {
  await findPrograms([...['python3', 'openssl'].map(name => ({ names: [name], aptPackage: name })), chromiumProgram])
  system = await startSystem({ gatewayEnvironment: { DOCS: 'on' } })
  tenant = await createTenant(system)
  source = await createWallet({ ...system, ...tenant }, { deposits: ['1000.00'] })
  target = await createWallet({ ...system, ...tenant })
})
afterAll(() => system.stop())

let count = 0
/** Makes an order and returns its record. */
async function order(amount = '1.50') {
  const body = { sourceWalletId: source, targetWalletId: target, amount, currency: 'USD', bizId: `order-${++count}` }
  return (await call(tenant, 'POST', createPath, body)).body.data
}

const receiptPath = (name: string) => `/api/v1/transfer/query/orders/${name}/receipt`
const getReceipt = (name: string, credentials: Credentials = tenant) => call(credentials, 'GET', receiptPath(name))
async function receiptOf(name: string, credentials: Credentials = tenant): Promise<string> {
  const { body } = await getReceipt(name, credentials)
  expect(body.code).toBe('2000')
  return body.data.receipt
}
const claimsOf = (receipt: string): ReceiptClaims =>
  JSON.parse(Buffer.from(receipt.split('.')[1]!, 'base64url').toString())
const keyIdOf = (receipt: string) => JSON.parse(Buffer.from(receipt.split('.')[0]!, 'base64url').toString()).kid
const getKeys = async (baseUrl = system.baseUrl): Promise<ReceiptKeys> =>
  (await fetch(`${baseUrl}/.well-known/jwks.json`)).json() as Promise<ReceiptKeys>

describe('a receipt', () => {
  test('says what the order and its flows say', async () => {
    const made = await order('100.50')
    const flowOf = async (walletId: string) =>
      (await call(tenant, 'GET', `/api/v1/wallets/${walletId}/flows?size=1`)).body.data.content[0]
    const claims = claimsOf(await receiptOf(made.bizId))
    const { transferId, bizId, amount, currency, sourceWalletId, targetWalletId, completedAt } = made
    const mac = expect.stringMatching(/^[A-Za-z0-9_-]{44}$/)
    expect(claims).toEqual({
      workspaceId: tenant.workspaceId,
      transferId,
      bizId,
      amount,
      currency,
      sourceWalletId,
      targetWalletId,
      completedAt,
      position: expect.any(Number),
      reversesTransferId: null,
      source: { sequence: (await flowOf(source)).sequence, mac },
      target: { sequence: (await flowOf(target)).sequence, mac },
    })
    const { body } = await call(tenant, 'GET', `/api/v1/event/query/events/${claims.position - 1}?size=1`)
    expect(body.data.content[0].data.transfer.transferId).toBe(transferId)
  })

  test('has the same bytes each time, by bizId and transferId, also after a reversal and from another core', async () => {
    const { bizId, transferId } = await order()
    const receipt = await receiptOf(bizId)
    const reversal = { reversesTransferId: bizId, amount: '0.50', currency: 'USD', bizId: `${bizId}-refund` }
    await call(tenant, 'POST', '/api/v1/transfer/command/reverse', reversal)
    const other = await system.startCore()
    const gateway = await system.startGateway({ CORE_URL: other.url })
    for (const name of [bizId, transferId])
      for (const baseUrl of [system.baseUrl, gateway.url])
        expect(await receiptOf(name, { ...tenant, baseUrl })).toBe(receipt)
    expect(claimsOf(await receiptOf(`${bizId}-refund`))).toMatchObject({
      reversesTransferId: transferId,
      sourceWalletId: target,
      amount: '0.50',
    })
    await gateway.stop()
    await other.stop()
  })

  test('of a transfer in a batch is one of its own', async () => {
    const item = (bizId: string) => ({
      sourceWalletId: source,
      targetWalletId: target,
      amount: '1',
      currency: 'USD',
      bizId,
    })
    await call(tenant, 'POST', batchPath, { transfers: [item('batch-a'), item('batch-b')] })
    const [first, second] = [claimsOf(await receiptOf('batch-a')), claimsOf(await receiptOf('batch-b'))]
    expect(second.position).toBe(first.position + 1)
    expect(second.source.sequence).toBe(first.source.sequence + 1)
  })

  test('needs the scope transfer:read; of a deposit, and of nothing, it is T001', async () => {
    const { bizId } = await order()
    const { workspaceId } = tenant
    const reader = await createKey({ ...system, workspaceId }, { scopes: ['wallet:read'] })
    expect((await getReceipt(bizId, reader)).body.code).toBe('GA2024')
    await system.admin.wallets.deposit.mutate({ workspaceId, walletId: source, amount: '1', bizId: 'a-deposit' })
    for (const name of ['a-deposit', 'absent', '%00', 'trf_01h455vb4pex5vsknk084sn02q'])
      expect((await getReceipt(name)).body.code, name).toBe('T001')
  })
})

describe('anybody can verify it with the public keys', () => {
  test('in Python and in JavaScript', async () => {
    const receipt = await receiptOf((await order()).bizId)
    const jwks = await getKeys()
    const { verifyReceipt } = await verifierInJavaScript()
    expect(await verifyReceipt(receipt, jwks)).toEqual(claimsOf(receipt))
    expect(await verifyInPython(receipt, await writeKeys(jwks))).toEqual(claimsOf(receipt))
  })

  test('in a browser, on a page of another origin', async () => {
    const receipt = await receiptOf((await order()).bizId)
    const browser = await Chromium.start()
    try {
      // localhost is another origin than 127.0.0.1, and a secure context too.
      const page = await browser.open(`${system.baseUrl.replace('127.0.0.1', 'localhost')}/openapi.json`)
      const verifier = (await readFile(javaScriptVerifier, 'utf8')).replace('export ', '')
      const verify = (text: string) =>
        page.evaluate(
          `${verifier}; fetch('${system.baseUrl}/.well-known/jwks.json').then(answer => answer.json())
             .then(jwks => verifyReceipt('${text}', jwks)).catch(error => error.message)`,
        )
      expect(await verify(receipt)).toEqual(claimsOf(receipt))
      const [header, payload, signature] = receipt.split('.')
      const forged = Buffer.from(Buffer.from(payload!, 'base64url').toString().replace('1.50', '9.50'))
      expect(await verify([header, forged.toString('base64url'), signature].join('.'))).toBe('its signature is wrong')
    } finally {
      await browser.stop()
    }
  })

  test('the keys are served unsigned, cacheable, to every origin, and nowhere else', async () => {
    const url = `${system.baseUrl}/.well-known/jwks.json`
    const answer = await fetch(url)
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/jwk-set+json'])
    expect(answer.headers.get('cache-control')).toBe('public, max-age=300')
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
    const jwks = await answer.json()
    expect(jwks).toEqual({
      keys: [
        { kty: 'OKP', crv: 'Ed25519', x: expect.stringMatching(/^[\w-]{43}$/), kid: 'r1', use: 'sig', alg: 'EdDSA' },
      ],
    })
    expect(JSON.stringify(jwks)).not.toContain(system.receiptKeys.slice(3, 20))
    const again = await fetch(url, { headers: { 'If-None-Match': answer.headers.get('etag')! } })
    expect(again.status).toBe(304)
    const head = await fetch(url, { method: 'HEAD' })
    expect([head.status, await head.text()]).toEqual([200, ''])
    expect((await fetch(url, { method: 'POST' })).status).toBe(404)
    for (const path of ['/.well-known/jwks.json/', '/.well-known/jwks', '/.well-known/JWKS.json', '/.well-known/'])
      expect((await fetch(system.baseUrl + path)).status, path).toBe(404)
  })

  test('while core is unavailable, also without documentation', async () => {
    const core = await system.startCore()
    const gateway = await system.startGateway({ CORE_URL: core.url, DOCS: 'off' })
    const jwks = await getKeys(gateway.url)
    await core.stop()
    expect(await getKeys(gateway.url)).toEqual(jwks)
    const cold = await system.startGateway({ CORE_URL: core.url })
    const failed = await fetch(`${cold.url}/.well-known/jwks.json`)
    expect([failed.status, ((await failed.json()) as { code: string }).code]).toEqual([503, 'S002'])
    expect(failed.headers.get('cache-control')).toBe('no-store')
    await gateway.stop()
    await cold.stop()
  })
})

const script = fileURLToPath(new URL('../cli/admin.ts', import.meta.url))

/** Runs `receipt check` on a file with this text, and on standard input. Returns its exit code, its result and its text. */
async function check(receipt: string, coreUrl = system.coreUrl) {
  const file = join(await makeTempDir('receipt'), 'receipt.txt')
  await writeFile(file, `${receipt}\n`)
  const { PATH, NODE_COMPILE_CACHE } = process.env
  const env = { PATH, NODE_COMPILE_CACHE, CORE_URL: coreUrl, CORE_TOKEN: system.adminToken }
  const run = (...flags: string[]) =>
    new Promise<{ exitCode: number; stdout: string }>(resolve => {
      const args = [script, 'receipt', 'check', '--file', ...flags]
      const program = execFile(process.execPath, args, { env }, (error, stdout) =>
        resolve({ exitCode: error ? Number(error.code) : 0, stdout }),
      )
      program.stdin!.end(`${receipt}\n`)
    })
  const [shown, json] = [await run(file), await run('-', '--json')]
  expect(json.exitCode).toBe(shown.exitCode)
  const { verdict, claims } = JSON.parse(json.stdout)
  return { exitCode: shown.exitCode, text: shown.stdout, verdict, claims }
}

describe('receipt check', () => {
  test('confirms a genuine receipt, and says what it says', async () => {
    const { bizId, transferId } = await order('7.25')
    const receipt = await receiptOf(bizId)
    const { exitCode, text, verdict, claims } = await check(receipt)
    expect({ exitCode, verdict, claims }).toEqual({ exitCode: 0, verdict: 'CONFIRMED', claims: claimsOf(receipt) })
    expect(text).toMatch(/^The receipt is genuine, and the ledger says the same\.\n\nIt says: 7\.25 USD from wal_/)
    expect(text).toContain(`\nTransfer   ${transferId}, with the bizId ${bizId}\n`)
  })

  test('refuses a changed receipt, and one of another key', async () => {
    const [header, payload, signature] = (await receiptOf((await order()).bizId)).split('.') as [string, string, string]
    const other = Buffer.from(payload, 'base64url').toString().replace('1.50', '9.50')
    const forged = [header, Buffer.from(other).toString('base64url'), signature].join('.')
    const otherKeys = (id: string) => parseSigningKeys(`${id}:${randomBytes(32).toString('base64')}`)
    const claims = claimsOf([header, payload, signature].join('.'))
    for (const [receipt, expected, sentence] of [
      [forged, 'WRONG_SIGNATURE', 'it was changed after it was signed'],
      [signReceipt(otherKeys('r1'), claims), 'WRONG_SIGNATURE', 'or signed by somebody else'],
      [signReceipt(otherKeys('r9'), claims), 'UNKNOWN_KEY', 'no key in RECEIPT_KEYS has the ID'],
      ['paid in full', 'MALFORMED', 'This is not a receipt'],
    ] as const) {
      const { exitCode, text, verdict, claims } = await check(receipt)
      expect({ exitCode, verdict, claims }).toEqual({ exitCode: 1, verdict: expected, claims: null })
      expect(text).toContain(sentence)
    }
  })

  test('finds that the ledger says something else, or no longer has the transfer', async () => {
    const keys = parseSigningKeys(system.receiptKeys)
    const claims = claimsOf(await receiptOf((await order()).bizId))
    const different = await check(signReceipt(keys, { ...claims, amount: '15.00' }))
    expect(different).toMatchObject({ exitCode: 1, verdict: 'TRANSFER_DIFFERENT' })
    expect(different.text).toContain('the ledger says something else: run ledger verify')
    const missing = await check(signReceipt(keys, { ...claims, transferId: 'trf_01h455vb4pex5vsknk084sn02q' }))
    expect(missing).toMatchObject({ exitCode: 1, verdict: 'TRANSFER_MISSING' })
    expect(missing.text).toContain('the ledger has no such transfer')
  })
})

describe('a transfer that was modified in the database gets no receipt', () => {
  test.each([
    ['the amount', 'amount = amount + 1'],
    ['the bizId', `biz_id = biz_id || '-other'`],
    ['the MAC of the source flow', 'source_mac = target_mac'],
    ['the MAC of the target flow', 'target_mac = source_mac'],
    ['the balance of the target', 'target_balance = target_balance + 1'],
    ['the time', `created_at = created_at - interval '1 day'`],
  ])('%s: S001, a log line and a metric; an earlier receipt is not confirmed', async (_, change) => {
    const { bizId, transferId } = await order()
    const receipt = await receiptOf(bizId)
    const where = `where id = '${uuidFromId('transfer', transferId)}'`
    const { ownerUrl } = system.database
    const asOwner = (sql: string) => execute(ownerUrl, `set session_replication_role = replica; ${sql}`)
    const kept = `kept_${++count}`
    await asOwner(`create table ${kept} as select * from transfer ${where}; update transfer set ${change} ${where}`)
    const before = await readMetric(system.coreUrl, 'core_modified_rows_total{table="transfer"}')
    const { status, body } = await getReceipt(transferId)
    expect([status, body.code, body.data]).toEqual([500, 'S001', null])
    await until('core has logged it', async () =>
      logLines(system.cores[0]!).some(({ reason }) => String(reason).includes(transferId)),
    )
    expect(await readMetric(system.coreUrl, 'core_modified_rows_total{table="transfer"}')).toBe(before + 1)
    const { verdict } = await system.admin.receipts.check.query({ receipt })
    expect(verdict).toBe('TRANSFER_MODIFIED')
    await asOwner(`delete from transfer ${where}; insert into transfer select * from ${kept}; drop table ${kept}`)
    expect(await receiptOf(transferId)).toBe(receipt)
  })
})

test('after a change of keys the new one signs, and receipts of the old one stay genuine until it is removed', async () => {
  const { bizId } = await order()
  const old = await receiptOf(bizId)
  const fresh = `r2:${randomBytes(32).toString('base64')}`
  const cores = [
    // A new key is published first, then it signs, then the old one may go.
    await system.startCore({ RECEIPT_KEYS: `${system.receiptKeys},${fresh}` }),
    await system.startCore({ RECEIPT_KEYS: `${fresh},${system.receiptKeys}` }),
    await system.startCore({ RECEIPT_KEYS: fresh }),
  ]
  const seen = []
  for (const core of cores) {
    const client = createCoreClient({ url: core.url, token: system.adminToken })
    const { receipt } = await client.receipts.get.query({ ...tenant, caller: { requestId: 'test' }, bizId })
    const { keys } = await client.receipts.keys.query()
    const { verdict } = await client.receipts.check.query({ receipt: old })
    seen.push({ isSame: receipt === old, keyId: keyIdOf(receipt), published: keys.map(({ kid }) => kid), verdict })
    expect(claimsOf(receipt)).toEqual(claimsOf(old))
    await client.close()
    await core.stop()
  }
  expect(seen).toEqual([
    { isSame: true, keyId: 'r1', published: ['r1', 'r2'], verdict: 'CONFIRMED' },
    { isSame: false, keyId: 'r2', published: ['r2', 'r1'], verdict: 'CONFIRMED' },
    { isSame: false, keyId: 'r2', published: ['r2'], verdict: 'UNKNOWN_KEY' },
  ])
})
