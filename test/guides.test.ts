import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createWalletClient, type WalletClient, type Webhook } from '@workspace-wallet/client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { pickFreePort } from '../cli/processes/ports.ts'
import { findPrograms } from '../cli/processes/programs.ts'
import { type Demo, ensureDemo } from '../cli/start/demo.ts'
import { hourMs, moveTransfersToPast } from './setup/past.ts'
import { Shell, type ShellName } from './setup/shell.ts'
import { ShownOutputs } from './setup/shown-output.ts'
import { type System, startSystem } from './setup/system.ts'
import { makeTempDir } from './setup/temp.ts'
import { until } from './setup/until.ts'

/**
 * Runs the commands of the README, the guides, docs/signing.md and the shop on demo workspaces like that of `npm start`, and
 * compares what they print: each page in a new shell on a new demo, and all pages one after the other in one shell on one
 * demo.
 */

const root = fileURLToPath(new URL('../', import.meta.url))
const read = (path: string) => readFile(join(root, path), 'utf8')

type Page = { path: string; title: string; text: string }
type Step = { command: string; output: string }

async function pageOf(path: string): Promise<Page> {
  const text = await read(path)
  return { path, title: /^# (.*)$/m.exec(text)![1]!, text }
}

/** The commands in the console blocks of a page, each with the output that the page shows. */
function stepsOf(text: string): Step[] {
  return [...text.matchAll(/^```console\n(.*?)^```$/gms)].flatMap(([, block]) =>
    block!
      .split(/^\$ /m)
      .slice(1)
      .map(step => ({ command: step.slice(0, step.indexOf('\n')), output: step.slice(step.indexOf('\n') + 1) })),
  )
}

/** Sets the variables that all guides use, and links the guides in their order. */
const index = await pageOf('docs/guides/README.md')
const linked = [...index.text.matchAll(/^- \[[^\]]+\]\(([^)]+)\)/gm)].map(([, path]) => join('docs/guides', path!))
const guides = await Promise.all(linked.filter(path => path !== 'docs/versioning.md').map(pageOf))
const readme = await pageOf('README.md')
const shop = await pageOf('examples/shop/README.md')

let system: System
beforeAll(async () => {
  await findPrograms(['zsh', 'python3', 'curl', 'openssl'].map(name => ({ names: [name], aptPackage: name })))
  system = await startSystem()
  await system.startCourier()
})
afterAll(() => system.stop())

const dayMs = 86_400_000
/** A delivery that is not reported yet when its webhook changes is repeated. A reader does not type that fast. */
const changesWebhook = /webhook\/command\/rotate|PAUSED/

/** A shell in a directory like the checkout of a reader who has started the service. */
class Reader {
  readonly demo: Demo
  readonly client: WalletClient
  readonly directory: string
  readonly #shell: Shell
  /** The ports of the receiver in the guide on webhooks, and of the shop. */
  readonly #ports: Record<string, string>
  #fundedAtMs = Date.now()

  private constructor(demo: Demo, directory: string, shell: Shell, ports: Record<string, string>) {
    this.demo = demo
    this.client = createWalletClient(demo)
    this.directory = directory
    this.#shell = shell
    this.#ports = ports
  }

  /** @param known without it, a new demo workspace */
  static async create(shell: ShellName, known?: Omit<Demo, 'coreUrl' | 'consoleUrl'>): Promise<Reader> {
    const directory = await makeTempDir('guide')
    for (const name of ['node_modules', 'cli', 'examples', 'test'])
      await symlink(join(root, name), join(directory, name))
    await mkdir(join(directory, '.data'))
    const { baseUrl, coreUrl, adminToken } = system
    const consoleUrl = `${system.gateways[0]!.internalUrl}/console`
    const file = join(directory, '.data/demo.json')
    if (known) await writeFile(file, JSON.stringify(known))
    const { demo } = await ensureDemo(file, { baseUrl, coreUrl, consoleUrl }, system)
    await writeFile(join(directory, '.data/core.json'), JSON.stringify({ coreUrl, adminToken }))
    const ports = { 4000: String(await pickFreePort()), 4001: String(await pickFreePort()) }
    const { PATH, NODE_COMPILE_CACHE } = process.env
    const env = {
      PATH: `${join(process.execPath, '..')}:${PATH}`,
      NODE_COMPILE_CACHE,
      HOME: directory,
      SHOP_PORT: ports[4000],
    }
    return new Reader(demo, directory, new Shell(shell, { cwd: directory, env }), ports)
  }

  /** Runs the commands of a page, and compares what they print. */
  async follow({ path, text: page }: Page, outputs = new ShownOutputs()): Promise<void> {
    // Limits per day begin again at midnight UTC.
    if (path.endsWith('/limits.md'))
      await until('the commands run on one day', () => Date.now() % dayMs < dayMs - 60_000)
    if (path.endsWith('/statements.md'))
      await until('the demo is more than a minute old', () => Date.now() > this.#fundedAtMs + 61_000)
    const text = page.replaceAll(/\b400[01]\b/g, port => this.#ports[port]!)
    for (const [, block, name] of text.matchAll(/^```(?:ts|python)\n(\S+ (\S+\.(?:ts|py))\n.*?)^```$/gms))
      await writeFile(join(this.directory, name!), block!)
    for (const { command, output } of stepsOf(text)) {
      if (changesWebhook.test(command)) await this.#untilDelivered()
      outputs.expectSame(await this.#shell.run(withoutNpm(command)), output, `${path}\n$ ${command}`)
    }
  }

  async #untilDelivered(): Promise<void> {
    await until('all events are delivered', async () => {
      const webhooks = await this.webhooks()
      const { last } = await this.client.events.read('head')
      return webhooks.every(({ status, position }) => status === 'PAUSED' || position === last)
    })
  }

  webhooks(): Promise<Webhook[]> {
    return Array.fromAsync(this.client.webhooks.listAll())
  }

  /** Makes the demo an hour older. */
  async wait(): Promise<void> {
    await moveTransfersToPast(system.database.ownerUrl, this.demo.workspaceId)
    this.#fundedAtMs -= hourMs
  }

  end(): void {
    this.#shell.end()
  }
}

/**
 * npm takes longer than the command. The directory has links into the checkout, whose own data directory would be the default of the
 * commands.
 */
function withoutNpm(command: string): string {
  const node = `DATA_DIR="\${DATA_DIR:-.data}" node`
  return command
    .replaceAll(/\bnpm run --silent (\w+) --/g, (_, name) => `${node} cli/${name}.ts`)
    .replaceAll(/\bnpm start\b/g, `${node} cli/start.ts`)
}

async function withReader<Result>(
  creating: Promise<Reader>,
  use: (reader: Reader) => Promise<Result>,
): Promise<Result> {
  const reader = await creating
  try {
    return await use(reader)
  } finally {
    reader.end()
  }
}

// First, while there is one workspace, whose counts the page shows.
test('README.md: the commands print what the page shows', async () => {
  await withReader(Reader.create('bash', system), reader => reader.follow(readme))
})

test.each([...guides, shop])('$title: the commands print what the page shows', async page => {
  await withReader(Reader.create('bash'), async reader => {
    if (page.path.endsWith('/statements.md')) await reader.wait()
    await reader.follow(index)
    await reader.follow(page)
    if (page.path.endsWith('/events.md')) await expectSameBalances(reader)
  })
})

/** The program of the guide has counted everything that moves money. */
async function expectSameBalances({ client, directory }: Reader): Promise<void> {
  const { content } = await client.events.read(0)
  for (const type of ['transfer.completed', 'wallet.deposited', 'wallet.withdrawn'])
    expect(content.map(event => event.type)).toContain(type)
  const wallets = await Array.fromAsync(client.wallets.listAll())
  const { balances } = JSON.parse(await readFile(join(directory, '.data/copy.json'), 'utf8'))
  expect(balances).toEqual(Object.fromEntries(wallets.map(({ walletId, balance }) => [walletId, balance])))
}

test.concurrent.each(['bash', 'zsh'] as const)(
  'all pages can be followed one after the other in one %s, and leave no webhook that delivers',
  async shell => {
    await withReader(Reader.create(shell), async reader => {
      for (const page of [index, ...guides, shop]) await reader.follow(page, new ShownOutputs({ isNewDemo: false }))
      expect((await reader.webhooks()).filter(({ status }) => status === 'ACTIVE')).toEqual([])
    })
  },
  // A command that hangs fails by itself.
  600_000,
)

test('every guide is run, and its code is in blocks that are run', () => {
  expect(guides.length).toBeGreaterThan(10)
  for (const { text, path } of guides) {
    expect(stepsOf(text).length, path).toBeGreaterThan(1)
    const blocks = [...text.matchAll(/^```(.*)\n(.*)\n/gm)].filter((_, at) => at % 2 === 0)
    for (const [, language, line] of blocks)
      expect(`${path}: ${language} ${line}`).toMatch(/: (console \$ |ts \/\/ \S+\.ts$|python # \S+\.py$)/)
  }
})
