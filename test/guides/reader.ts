import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createWalletClient, type WalletClient, type Webhook } from '@workspace-wallet/client'
import { expect } from 'vitest'
import { pickFreePort } from '../../cli/processes/ports.ts'
import { createDemoWorkspace, type Demo } from '../../cli/start/demo.ts'
import { generatorVersions, installGenerators } from '../setup/generators.ts'
import { readAnHourLater } from '../setup/past.ts'
import { Shell, type ShellName } from '../setup/shell.ts'
import type { ShownOutputs } from '../setup/shown-output.ts'
import type { System } from '../setup/system.ts'
import { makeTempDir } from '../setup/temp.ts'
import { until } from '../setup/until.ts'
import { filesOf, type Page, stepsOf } from './pages.ts'
import { Transcript } from './transcript.ts'

const root = join(import.meta.dirname, '../..')
const dayMs = 86_400_000
/** A delivery that is not reported yet when its webhook changes is repeated. A reader does not type that fast. */
const changesWebhook = /webhook\/command\/rotate|PAUSED/

type Workspace = Pick<Demo, 'workspaceId' | 'apiKey' | 'apiSecret' | 'wallets'>

/** A shell in a directory like the checkout of a reader who has started the service. */
export class Reader {
  readonly client: WalletClient
  readonly directory: string
  readonly #system: System
  readonly #workspace: Workspace
  readonly #shell: Shell
  /** The ports of the receiver in the guide on webhooks, and of the shop. */
  readonly #ports: Record<string, string>

  private constructor(
    system: System,
    workspace: Workspace,
    directory: string,
    shell: Shell,
    ports: Record<string, string>,
  ) {
    this.client = createWalletClient({ ...workspace, baseUrl: system.baseUrl })
    this.directory = directory
    this.#system = system
    this.#workspace = workspace
    this.#shell = shell
    this.#ports = ports
  }

  /** @param known without it, a new workspace like the first one of `npm start` */
  static async create(system: System, shell: ShellName, known?: Workspace): Promise<Reader> {
    const directory = await makeTempDir('guide')
    for (const name of ['node_modules', 'cli', 'examples', 'test'])
      await symlink(join(root, name), join(directory, name))
    await mkdir(join(directory, '.data'))
    const { baseUrl, coreUrl, adminToken } = system
    const { workspaceId, apiKey, apiSecret, wallets } = known ?? (await createDemoWorkspace(system.admin))
    const workspace = { workspaceId, apiKey, apiSecret, wallets }
    await writeFile(join(directory, '.data/demo.json'), JSON.stringify({ baseUrl, ...workspace }))
    await writeFile(join(directory, '.data/core.json'), JSON.stringify({ coreUrl, adminToken }))
    const ports = { 4000: String(await pickFreePort()), 4001: String(await pickFreePort()) }
    const { PATH, NODE_COMPILE_CACHE } = process.env
    const env = {
      PATH: `${join(process.execPath, '..')}:${PATH}`,
      NODE_COMPILE_CACHE,
      HOME: directory,
      SHOP_PORT: ports[4000],
    }
    return new Reader(system, workspace, directory, new Shell(shell, { cwd: directory, env }), ports)
  }

  /**
   * Runs the commands of a page. Returns everything that they print.
   *
   * @param outputs compares it with what the page shows
   */
  async follow(page: Page, outputs?: ShownOutputs): Promise<string> {
    // Limits per day begin again at midnight UTC.
    if (page.path.endsWith('/limits.md'))
      await until('the commands run on one day', () => Date.now() % dayMs < dayMs - 60_000)
    if (!page.path.endsWith('/statements.md')) return this.#runCommands(page, outputs)
    // The statement ends a minute ago.
    const { ownerUrl } = this.#system.database
    return readAnHourLater(ownerUrl, this.#workspace.workspaceId, () => this.#runCommands(page, outputs))
  }

  async #runCommands(page: Page, outputs?: ShownOutputs): Promise<string> {
    const [free, shownPorts] = [this.#ports, Object.entries(this.#ports)]
    const withPorts = (text: string) => text.replaceAll(/\b400[01]\b/g, port => free[port]!)
    const asShown = (text: string) =>
      shownPorts.reduce((result, [port, used]) => result.replaceAll(`127.0.0.1:${used}`, `127.0.0.1:${port}`), text)
    for (const { path, text } of filesOf(page)) {
      await mkdir(join(this.directory, dirname(path)), { recursive: true })
      await writeFile(join(this.directory, path), withPorts(text))
    }
    const transcript = new Transcript()
    for (const { command, output: shown } of stepsOf(page)) {
      if (changesWebhook.test(command)) await this.#untilDelivered()
      const output = asShown(await this.run(withPorts(command)))
      outputs?.expectSame(output, shown, `${page.path}\n$ ${command}`)
      transcript.add(command, output)
    }
    return transcript.text
  }

  /** What a command prints. */
  async run(command: string): Promise<string> {
    return this.#shell.run(withoutNpm(await withoutInstall(command)))
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

  end(): void {
    this.#shell.end()
  }
}

/** Links to packages that are installed once, in place of those that a command installs. */
async function withoutInstall(command: string): Promise<string> {
  if (!command.startsWith('npm install ')) return command
  const versions = await generatorVersions()
  const installed = command.split(' ').filter(word => /.@\d/.test(word))
  for (const each of installed) {
    const name = each.slice(0, each.lastIndexOf('@'))
    expect(each, 'test/generators/package.json has another version').toBe(`${name}@${versions[name]}`)
  }
  return `ln -s ${await installGenerators()} node_modules`
}

/**
 * npm takes longer than the command. The directory has links into the checkout, whose own data directory would be the default of the
 * commands.
 */
function withoutNpm(command: string): string {
  const node = `DATA_DIR="\${DATA_DIR:-.data}" node`
  return command
    .replaceAll(/\bnpm run --silent (\w+) --/g, (_, name) => `${node} cli/${name}.ts`)
    .replaceAll(/^npx /g, 'node_modules/.bin/')
    .replaceAll(/\bnpm start\b/g, `${node} cli/start.ts`)
}
