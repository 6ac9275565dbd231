import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ShownOutputs } from './setup/shown-output.ts'
import { type System, startSystem } from './setup/system.ts'
import { makeTempDir } from './setup/temp.ts'
import { until } from './setup/until.ts'
import { createTenant, createWallet } from './setup/workspaces.ts'

/**
 * Installs the packages of `npm run pack` outside of the repository, as another repository does, and type-checks and runs
 * the programs of their handbooks.
 */

const root = fileURLToPath(new URL('../', import.meta.url))
const execute = promisify(execFile)

/** There is no npm package of Node 26 for other platforms. */
const runsNode26 = process.platform === 'linux'

let system: System
let tarballs: string[]
/** Programs that no package depends on: compilers and Node 26. */
let programs: string
beforeAll(async () => {
  const out = await makeTempDir('tarballs')
  programs = await makeTempDir('programs')
  const packages = ['typescript@5.9.3', ...(runsNode26 ? [`node-linux-${process.arch}@26.10.0`] : [])]
  const [started, packed] = await Promise.all([
    startSystem(),
    npm(root, 'run', '--silent', 'pack', '--', '--out', out),
    install(programs, ...packages),
  ])
  system = started
  tarballs = packed.trim().split('\n')
})
afterAll(() => system.stop())

async function npm(directory: string, ...args: string[]): Promise<string> {
  // Without the settings that `npm test` passes on, which are about the repository.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_(?!config_\/\/)/.test(name)))
  return (await execute('npm', args, { cwd: directory, env })).stdout
}

/** Installs packages into a folder with the registry of the user. */
async function install(directory: string, ...packages: string[]): Promise<void> {
  await writeFile(join(directory, 'package.json'), '{ "private": true, "type": "module" }')
  await npm(directory, 'install', '--prefer-offline', '--no-audit', '--no-fund', '--no-update-notifier', ...packages)
}

const compilers = {
  'TypeScript 7': () => join(root, 'node_modules/.bin/tsc'),
  'TypeScript 5.9': () => join(programs, 'node_modules/.bin/tsc'),
}
const nodes = {
  [`Node ${process.version}`]: () => process.execPath,
  ...(runsNode26 && { 'Node 26': () => join(programs, `node_modules/node-linux-${process.arch}/bin/node`) }),
}

const strict = {
  module: 'nodenext',
  target: 'es2023',
  lib: ['es2023'],
  types: ['node'],
  strict: true,
  skipLibCheck: false,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  noPropertyAccessFromIndexSignature: true,
  rootDir: '.',
  outDir: 'out',
}

/** A repository of its own, with one installed package and some programs, which are compiled. */
async function createConsumer(name: string, sources: Record<string, string>): Promise<string> {
  const directory = await makeTempDir('consumer')
  await install(directory, tarballOf(name), '@types/node@24.10.1')
  await writeFile(join(directory, 'tsconfig.json'), JSON.stringify({ compilerOptions: strict }))
  for (const [file, text] of Object.entries(sources)) await writeFile(join(directory, file), text)
  await compile(compilers['TypeScript 7'](), directory)
  return directory
}

function tarballOf(name: string): string {
  return tarballs.find(path => basename(path).startsWith(`workspace-wallet-${name}-`))!
}

/** Returns the errors of the compiler; it writes JavaScript to `out`. */
async function compile(compiler: string, directory: string): Promise<string> {
  try {
    return (await execute(compiler, ['--project', directory])).stdout
  } catch (error) {
    return (error as { stdout: string }).stdout
  }
}

async function filesOf(tarball: string): Promise<string[]> {
  const { stdout } = await execute('tar', ['-tzf', tarball])
  return stdout.trim().split('\n').sort()
}

test('npm run pack prints the paths of the packages', () => {
  const names = ['workspace-wallet-client-1.0.0.tgz', 'workspace-wallet-core-client-1.0.0.tgz']
  names.push('workspace_wallet-1.0.0-py3-none-any.whl')
  expect(tarballs.map(path => basename(path))).toEqual(names)
})

/** Everything that a consumer has installed. */
async function installedIn(directory: string): Promise<{ path: string; hasInstallScript?: boolean }[]> {
  const { packages } = JSON.parse(await readFile(join(directory, 'package-lock.json'), 'utf8'))
  return Object.entries<object>(packages).map(([path, entry]) => ({ ...entry, path }))
}

describe('core-client', async () => {
  const page = await readFile(join(root, 'docs/internal-client.md'), 'utf8')
  /** The programs of the handbook, and what they print. */
  const documented = [...page.matchAll(/^```ts\n(.*?)^```\n.*?^```\n(.*?)^```$/gms)].map(([, source, output], at) => ({
    file: `program-${at}.ts`,
    source: source!,
    output: output!,
  }))
  let directory: string
  let installed: string
  beforeAll(async () => {
    const sources = documented.map(({ file, source }) => [file, source])
    directory = await createConsumer('core-client', { ...Object.fromEntries(sources), 'types.ts': types })
    installed = join(directory, 'node_modules/@workspace-wallet/core-client')
  })

  /** Each line below `@ts-expect-error` is an error only if the types are known: nothing may be `any`. */
  const types = `
    import { type CoreClient, Decimal, domainErrorOf, type TransferOrder, type Wallet } from '@workspace-wallet/core-client'
    export async function check(core: CoreClient, error: unknown) {
      const workspace = { workspaceId: '', caller: { requestId: '' } }
      const wallet: Wallet = await core.wallets.get.query({ ...workspace, walletId: '' })
      const sum: Decimal = wallet.balance.plus(new Decimal('0.1'))
      const at: Date = wallet.createdAt
      // @ts-expect-error a Decimal is no number
      const wrong: number = wallet.balance
      // @ts-expect-error there is no such field
      wallet.amount
      // @ts-expect-error there is no such procedure
      core.wallets.rename
      // @ts-expect-error the caller is missing
      await core.wallets.get.query({ workspaceId: '', walletId: '' })
      const order = { currency: 'USD', sourceWalletId: '', targetWalletId: '' }
      // @ts-expect-error an amount is a string
      const made: TransferOrder = await core.transfers.create.mutate({ ...workspace, order: { ...order, amount: 1 } })
      const refused = domainErrorOf(error)
      if (refused?.code === 'S002') refused.details.retryAfterSeconds.toFixed()
      // @ts-expect-error the details depend on the code
      refused?.details.retryAfterSeconds
      // @ts-expect-error there is no such code
      if (refused?.code === 'S999') return
      return { sum, at, wrong, made }
    }
  `

  test('the package contains one JavaScript file, one declaration file, and its handbook', async () => {
    expect(await filesOf(tarballOf('core-client'))).toEqual([
      'package/LICENSE-msgpackr',
      'package/README.md',
      'package/errors.md',
      'package/index.d.ts',
      'package/index.js',
      'package/package.json',
      'package/roles.md',
    ])
    const readme = await readFile(join(installed, 'README.md'), 'utf8')
    expect(readme).toBe(page)
    const links = [...readme.matchAll(/\]\(([^)]+)\)/g)].map(([, target]) => target)
    expect(new Set(links)).toEqual(new Set(['roles.md', 'errors.md']))
  })

  test('the package depends on exactly what it imports, and on no database, ORM or part of this repository', async () => {
    const manifest = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8'))
    expect(manifest).toMatchObject({ license: 'UNLICENSED', exports: { '.': { types: './index.d.ts' } } })
    expect(manifest).not.toHaveProperty('private')
    expect(Object.keys(manifest.dependencies)).toEqual([
      '@opentelemetry/api',
      '@trpc/client',
      '@trpc/server',
      'decimal.js',
      'superjson',
      'uuidv7',
      'zod',
    ])
    for (const file of ['index.js', 'index.d.ts']) {
      const text = await readFile(join(installed, file), 'utf8')
      expect(text).not.toMatch(/mikro|kysely|["']pg["']|pino|EntityManager|KeyRing|from ["'](\.|@workspace-wallet)/i)
    }
    expect(await npm(directory, 'ls', '--all', '--parseable')).not.toMatch(/mikro-orm|kysely|\/pg$/m)
  })

  test('nothing that is installed with it runs a script when it is installed', async () => {
    const installed = await installedIn(directory)
    expect(installed.map(({ path }) => path)).toContain('node_modules/superjson')
    expect(installed.filter(({ hasInstallScript }) => hasInstallScript)).toEqual([])
  })

  test.each(Object.entries(compilers))('its types are strict: %s', async (_, compiler) => {
    expect(await compile(compiler(), directory)).toBe('')
  })

  describe.each(Object.entries(nodes))('%s', (_, node) => {
    test('the programs of the handbook print what it shows', async () => {
      const { coreUrl, serviceToken, adminToken, admin } = system
      const { workspaceId } = await createTenant(system)
      for (const [name, currency, amount] of [
        ['Main', 'USD', '1000.00'],
        ['Savings', 'USD', '250.00'],
        ['Travel', 'EUR', '500.00'],
      ] as const)
        await createWallet({ admin, workspaceId }, { name, currency, deposits: [amount] })
      const env = { CORE_URL: coreUrl, CORE_TOKEN: serviceToken, ADMIN_TOKEN: adminToken, WORKSPACE: workspaceId }
      expect(documented).toHaveLength(4)
      const outputs = new ShownOutputs()
      for (const { file, output } of documented) {
        const { stdout, stderr } = await execute(node(), [join(directory, file)], { env })
        expect(stderr).toBe('')
        outputs.expectSame(stdout, output, file)
      }
    })
  })
})

describe('client', async () => {
  const page = await readFile(join(root, 'packages/client/README.md'), 'utf8')
  const [beforeOperations = '', operations = '', afterOperations = ''] = page.split(/^## (?:Operations|Retries)$/m)
  const codeOf = (text: string) => [...text.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, block]) => block).join('')
  /** One program: each block continues the one before. Another one has all operations. */
  const program = codeOf(beforeOperations + afterOperations)
  let directory: string
  beforeAll(async () => {
    directory = await createConsumer('client', {
      'program.ts': program,
      'operations.ts': everyOperation,
      'types.ts': types,
    })
    const compilerOptions = {
      ...strict,
      module: 'esnext',
      moduleResolution: 'bundler',
      lib: ['es2022', 'dom'],
      types: [],
    }
    await writeFile(join(directory, 'browser.json'), JSON.stringify({ compilerOptions, files: ['types.ts'] }))
  })

  const types = `
    import { ApiError, type TransferOrder, type WalletClient } from '@workspace-wallet/client'
    export async function check(client: WalletClient, error: unknown): Promise<TransferOrder> {
      const order = { sourceWalletId: '', targetWalletId: '', amount: '1.00', currency: 'USD' }
      // @ts-expect-error an amount is a string
      await client.transfers.create({ ...order, amount: 1 })
      // @ts-expect-error there is no such field
      await client.wallets.list({ sort: 'remark,asc' })
      // @ts-expect-error a hold needs a bizId
      await client.holds.create({ walletId: '', amount: '1.00', currency: 'USD', expiresInSeconds: 60 })
      // @ts-expect-error balances are strings
      const wrong: number = (await client.wallets.balance('')).available
      for await (const { content } of client.events.follow({ after: 0, types: ['hold.created'] }))
        for (const event of content)
          if (event.type === 'hold.created') event.data.hold.holdId.slice(wrong)
          // @ts-expect-error the data depends on the type
          else event.data.hold
      if (error instanceof ApiError && (error.code === 'T002' || error.code === 'a later one')) error.detail?.slice()
      return client.transfers.create(order, { signal: AbortSignal.timeout(1000) })
    }
  `

  /** Prints the requests of the operations. */
  const everyOperation = `
    import { createWalletClient, type Wallet } from '@workspace-wallet/client'
    const { BASE_URL: baseUrl = '', API_KEY: apiKey = '', API_SECRET: apiSecret = '', WALLETS = '' } = process.env
    const [source, target] = JSON.parse(WALLETS) as Pick<Wallet, 'walletId'>[]
    const client = createWalletClient({ baseUrl, apiKey, apiSecret, fetch: (url, init) => {
      console.log(init!.method, new URL(String(url)).pathname)
      return fetch(url, init)
    } })
    ${codeOf(operations)}
    console.log([wallet, secret, rotated.secret].every(Boolean))
  `

  test('its README shows every operation of the OpenAPI document once, in a program that runs', async () => {
    const { apiKey: API_KEY, apiSecret: API_SECRET, baseUrl: BASE_URL, ...tenant } = await createTenant(system)
    const of = { admin: system.admin, ...tenant }
    const wallets = [await createWallet(of, { deposits: ['100.00'] }), await createWallet(of)]
    const env = { BASE_URL, API_KEY, API_SECRET, WALLETS: JSON.stringify(wallets.map(walletId => ({ walletId }))) }
    const { stdout } = await execute(process.execPath, [join(directory, 'out/operations.js')], { env })
    const requests = stdout.trim().split('\n')
    expect(requests.pop()).toBe('true')
    const named = [...operations.matchAll(/ \/\/ (\w+)$/gm)].map(([, operationId]) => operationId)
    expect(requests.map(operationOf)).toEqual(named)
    expect(named.toSorted()).toEqual(documentedOperations.map(({ operationId }) => operationId).sort())
  })

  const document: { paths: Record<string, Record<string, { operationId: string }>> } = JSON.parse(
    await readFile(join(root, 'gateway/openapi.json'), 'utf8'),
  )
  const documentedOperations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId }]) => ({
      operationId,
      pattern: new RegExp(`^${method.toUpperCase()} ${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`),
    })),
  )
  const operationOf = (request: string) =>
    documentedOperations.find(({ pattern }) => pattern.test(request))?.operationId

  test('the package contains JavaScript, declarations and its README, and depends on nothing', async () => {
    const files = await filesOf(tarballOf('client'))
    expect(files.map(file => file.replace(/[\w-]+\.(js|d\.ts)$/, '*.$1'))).toEqual(
      expect.arrayContaining(['package/*.js', 'package/*.d.ts', 'package/README.md', 'package/package.json']),
    )
    expect(files.filter(file => !/^package\/([\w-]+\.(js|d\.ts)|README\.md|package\.json)$/.test(file))).toEqual([])
    const installed = join(directory, 'node_modules/@workspace-wallet/client')
    expect(await readFile(join(installed, 'README.md'), 'utf8')).toBe(page)
    const manifest = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8'))
    expect(manifest).toMatchObject({ dependencies: {}, engines: { node: '>=22' } })
    expect(manifest).not.toHaveProperty('private')
    expect(manifest).not.toHaveProperty('scripts')
  })

  test.each(Object.entries(compilers))('its types are strict, in Node and in browsers: %s', async (_, compiler) => {
    expect(await compile(compiler(), directory)).toBe('')
    expect(await compile(compiler(), join(directory, 'browser.json'))).toBe('')
  })

  test.each(Object.entries(nodes))('the program of the README runs until SIGTERM: %s', async (_, node) => {
    const { apiKey: API_KEY, apiSecret: API_SECRET, baseUrl: BASE_URL, ...tenant } = await createTenant(system)
    for (const name of ['Main', 'Savings'])
      await createWallet({ admin: system.admin, ...tenant }, { name, deposits: ['250.00'] })
    const child = spawn(node(), [join(directory, 'out/program.js')], { env: { BASE_URL, API_KEY, API_SECRET } })
    const exited = once(child, 'exit')
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', text => {
        output += text
      })
    await until('the program prints the event', () => output.includes(' rent-2026-11') || child.exitCode !== null)
    child.kill('SIGTERM')
    expect({ output, exit: await exited }).toMatchObject({ exit: [0, null] })
    expect(output).toMatch(/^trf_\w+ COMPLETED\nrejected: [ -~]+\nMain 149\.50\nSavings 350\.50\n\d+ rent-2026-11\n$/)
  })
})
