/** Runs the samples of the API reference as its readers do: every operation in every language. */
import { execFile } from 'node:child_process'
import { readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findPrograms } from '../cli/processes/programs.ts'
import type { SampleRequest } from '../gateway/src/docs/browser/client-call.ts'
import { type SampleLanguage, sampleLanguages, sampleOf } from '../gateway/src/docs/browser/samples.ts'
import type { OpenApiDocument } from '../gateway/src/docs/openapi-document.ts'
import { operationsOf } from '../gateway/src/docs/operations.ts'
import { type Credentials, call } from './setup/client.ts'
import { type System, startSystem } from './setup/system.ts'
import { makeTempDir } from './setup/temp.ts'
import { createTenant, createWallet } from './setup/workspaces.ts'

const root = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url))
const document = JSON.parse(await readFile(root('gateway/openapi.json'), 'utf8')) as OpenApiDocument
const operations = operationsOf(document)

/** Everything that a language could have to quote. */
const remark = `it's "5" \\ $HOME \${x} \`y\` %s é 💶\n\tline two`

let system: System
let programs: { python3: string; go: string; curl: string }
beforeAll(async () => {
  const [started, [python3, go, curl]] = await Promise.all([
    startSystem(),
    findPrograms([
      { names: ['python3'], aptPackage: 'python3' },
      { names: ['go'], aptPackage: 'golang-go' },
      { names: ['curl'], aptPackage: 'curl' },
      { names: ['openssl'], aptPackage: 'openssl' },
    ]),
  ])
  system = started
  programs = { python3: python3!, go: go!, curl: curl! }
})
afterAll(() => system.stop())

/** A workspace of its own for each language, so that each can run every command. */
type World = Credentials & { source: string; target: string; frozen: string; webhookId: string; past: string }

async function createWorld(): Promise<World> {
  const tenant = await createTenant(system)
  const of = { admin: system.admin, ...tenant }
  const source = await createWallet(of, { name: 'Main', deposits: ['100.00'] })
  const target = await createWallet(of, { name: 'Savings', deposits: ['100.00'] })
  const frozen = await createWallet(of, { name: 'Frozen' })
  const url = 'http://127.0.0.1:9/events'
  const { body } = await call(tenant, 'POST', '/api/v1/webhook/command/create', { url, bizId: 'first' })
  const { webhookId } = body.data as { webhookId: string }
  return { ...tenant, source, target, frozen, webhookId, past: new Date(Date.now() - 3_600_000).toISOString() }
}

type Parts = { params?: Record<string, string>; query?: [string, string][]; body?: object }
const money = (amount: string) => ({ amount, currency: 'USD' })

/** What each operation is called with, in an order in which each works. */
const requests: Record<string, (world: World) => Parts> = {
  createTransfer: ({ source, target }) => ({
    body: { sourceWalletId: source, targetWalletId: target, ...money('10.00'), bizId: 'one', remark },
  }),
  createTransferBatch: ({ source, target }) => ({
    body: {
      transfers: [
        { sourceWalletId: source, targetWalletId: target, ...money('1.00'), bizId: 'two' },
        { reversesTransferId: 'one', ...money('1.00'), bizId: 'back' },
      ],
    },
  }),
  reverseTransfer: () => ({ body: { reversesTransferId: 'one', ...money('2.00'), bizId: 'refund' } }),
  createHold: ({ source }) => ({
    body: { walletId: source, ...money('5.00'), expiresInSeconds: 600, bizId: 'hold' },
  }),
  createWallet: () => ({ body: { name: 'New "wallet"', currency: 'USD', bizId: 'wallet-1' } }),
  changeWalletStatus: ({ frozen }) => ({ body: { walletId: frozen, status: 'FROZEN' } }),
  createWebhook: () => ({
    body: {
      url: 'http://127.0.0.1:9/more',
      bizId: 'second',
      types: ['hold.created', 'wallet.created'],
      concurrency: 2,
    },
  }),
  updateWebhook: ({ webhookId }) => ({ body: { webhookId, types: [], concurrency: 3, status: 'PAUSED' } }),
  rotateWebhookSecret: ({ webhookId }) => ({ body: { webhookId, graceSeconds: 60 } }),
  seekWebhook: ({ webhookId }) => ({ body: { webhookId, after: 1 } }),
  listWallets: () => ({
    query: [
      ['size', '2'],
      ['sort', 'currency,asc'],
      ['sort', 'name,desc'],
      ['currency', 'USD'],
    ],
  }),
  getWallet: ({ source }) => ({ params: { walletId: source } }),
  getWalletBalance: ({ source }) => ({ params: { walletId: source } }),
  getWalletBalanceAt: ({ source, past }) => ({ params: { walletId: source, at: past } }),
  getWalletStatement: ({ source, past }) => ({ params: { walletId: source, from: '2026-01-01', to: past } }),
  listWalletFlows: ({ source }) => ({ params: { walletId: source }, query: [['direction', 'OUT']] }),
  listTransfers: () => ({
    query: [
      ['bizIdPrefix', 'on'],
      ['size', '5'],
    ],
  }),
  listWalletTransfers: ({ source }) => ({ params: { walletId: source }, query: [['page', '0']] }),
  getTransfer: () => ({ params: { bizId: 'one' } }),
  getTransferCompletion: () => ({ params: { bizId: 'one' } }),
  getTransferReceipt: () => ({ params: { bizId: 'one' } }),
  listHolds: () => ({ query: [['status', 'OPEN']] }),
  listWalletHolds: ({ source }) => ({ params: { walletId: source } }),
  getHold: () => ({ params: { bizId: 'hold' } }),
  releaseHold: () => ({ body: { holdId: 'hold' } }),
  readEvents: () => ({
    params: { after: '0' },
    query: [
      ['type', 'hold.created'],
      ['type', 'transfer.completed'],
    ],
  }),
  listWebhooks: () => ({}),
  getWebhook: ({ webhookId }) => ({ params: { webhookId } }),
  deleteWebhook: ({ webhookId }) => ({ body: { webhookId } }),
}

function requestOf(operationId: string, world: World): SampleRequest {
  const { method, path } = operations.find(({ operation }) => operation.operationId === operationId)!
  const { params = {}, query = [], body } = requests[operationId]!(world)
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name]!))
  const target = query.length > 0 ? `${filled}?${new URLSearchParams(query)}` : filled
  return { operationId, method, target, params, query, body }
}

type Run = (operationId: string) => [program: string, args: string[]]

/** Writes the samples of all operations to files. Returns how one is run. */
const prepare: Record<SampleLanguage, (directory: string, samples: Map<string, string>) => Promise<Run>> = {
  async curl(directory, samples) {
    for (const [name, text] of samples) await writeFile(join(directory, name), text)
    return name => ['sh', [join(directory, name)]]
  },
  async typescript(directory, samples) {
    await symlink(root('node_modules'), join(directory, 'node_modules'))
    await writeFile(join(directory, 'package.json'), '{"type": "module"}')
    for (const [name, text] of samples) await writeFile(join(directory, `${name}.ts`), text)
    return name => [process.execPath, [join(directory, `${name}.ts`)]]
  },
  async python(directory, samples) {
    for (const [name, text] of samples) await writeFile(join(directory, `${name}.py`), text)
    return name => [programs.python3, [join(directory, `${name}.py`)]]
  },
  /** One program of all samples, because compiling takes longer than all else. */
  async go(directory, samples) {
    for (const [name, text] of samples)
      await writeFile(join(directory, `${name}.go`), text.replace('func main()', `func ${name}()`))
    const cases = [...samples.keys()].map(name => `\t${JSON.stringify(name)}: ${name},`)
    const main = `package main\n\nimport "os"\n\nvar samples = map[string]func(){\n${cases.join('\n')}\n}\n\nfunc main() { samples[os.Args[1]]() }\n`
    await writeFile(join(directory, 'main.go'), main)
    await writeFile(join(directory, 'go.mod'), 'module samples\n\ngo 1.19\n')
    const env = { HOME: directory, ...process.env, CGO_ENABLED: '0', GOPROXY: 'off', GOTOOLCHAIN: 'local' }
    await promisify(execFile)(programs.go, ['build', '-o', 'samples', '.'], { cwd: directory, env })
    return name => [join(directory, 'samples'), [name]]
  },
}

test('each operation has a sample that is run', () => {
  expect(Object.keys(requests).toSorted()).toEqual(operations.map(({ operation }) => operation.operationId).toSorted())
})

describe.concurrent.each(Object.keys(sampleLanguages) as SampleLanguage[])('%s', language => {
  test('the sample of every operation is signed, sent, and answered with a success', async ({ expect }) => {
    const world = await createWorld()
    const all = Object.keys(requests).map(operationId => requestOf(operationId, world))
    const samples = new Map(all.map(each => [each.operationId, sampleOf(language, system.baseUrl, each)]))
    const run = await prepare[language](await makeTempDir(`samples-${language}`), samples)
    const env = { ...process.env, API_KEY: world.apiKey, API_SECRET: world.apiSecret }
    for (const { operationId, method, target } of all) {
      const [program, args] = run(operationId)
      const { stdout } = await promisify(execFile)(program, args, { env })
      if (language === 'typescript') {
        expect(stdout, operationId).not.toBe('')
        continue
      }
      const answer = JSON.parse(stdout)
      expect(answer.code, `${operationId}: ${stdout}`).toBe('2000')
      if (method === 'GET') expect(answer.data).toEqual((await call(world, 'GET', target)).body.data)
    }
    // The commands did what their samples say, to the last character.
    const order = await call(world, 'GET', '/api/v1/transfer/query/orders/one')
    expect(order.body.data).toMatchObject({ amount: '10.00', remark, reversedAmount: '3.00' })
    const webhooks = await call(world, 'GET', '/api/v1/webhook/query/webhooks')
    expect(webhooks.body.data).toMatchObject({
      content: [{ bizId: 'second', types: ['hold.created', 'wallet.created'] }],
    })
    const wallets = await call(world, 'GET', '/api/v1/wallets?status=FROZEN')
    expect(wallets.body.data).toMatchObject({ content: [{ walletId: world.frozen }] })
  })
})
