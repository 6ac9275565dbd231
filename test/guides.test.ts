import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { pickFreePort } from '../tools/services/ports.ts'
import { findPrograms } from '../tools/services/programs.ts'
import { moveTransfersToPast } from './setup/past.ts'
import { masked, patternOf } from './setup/shown-output.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { createTenant, createWallet } from './setup/workspaces.ts'

/**
 * Runs the commands of the README, the guides and docs/signing.md, each page in one shell and on a demo workspace like that of
 * `npm start`, and compares their output.
 */

const root = fileURLToPath(new URL('../', import.meta.url))
const read = (path: string) => readFile(join(root, path), 'utf8')

type Step = { command: string; output: string }
type Page = { title: string; path: string; text: string; steps: Step[] }

/** The commands in the console blocks of a page, each with the output that the page shows. */
function stepsOf(page: string): Step[] {
  return [...page.matchAll(/^```console\n(.*?)^```$/gms)].flatMap(([, block]) =>
    block!
      .split(/^\$ /m)
      .slice(1)
      .map(step => ({ command: step.slice(0, step.indexOf('\n')), output: step.slice(step.indexOf('\n') + 1) })),
  )
}

/** The ports of the receiver in the guide on webhooks, and of the shop. */
const receiverPort = String(await pickFreePort())
const shopPort = String(await pickFreePort())

async function pageOf([title, path]: readonly [string, string]): Promise<Page> {
  const page = (await read(path)).replaceAll(/\b4001\b/g, receiverPort).replaceAll(/\b4000\b/g, shopPort)
  return { title, path, text: page, steps: stepsOf(page) }
}

/** A demo workspace must have transfers of an hour ago for it. */
const statementsPage = 'docs/guides/statements.md'
/** Limits per day begin again at midnight UTC. */
const limitsPage = 'docs/guides/limits.md'
const dayMs = 86_400_000
const readme = await pageOf(['Workspace Wallet and Transfer service', 'README.md'])
const guides = await Promise.all(
  (
    [
      ['Quick start', 'docs/guides/quick-start.md'],
      ['Signing a request', 'docs/signing.md'],
      ['Idempotency and retries', 'docs/guides/idempotency.md'],
      ['Errors', 'docs/guides/errors.md'],
      ['Pagination and filters', 'docs/guides/lists.md'],
      ['Events', 'docs/guides/events.md'],
      ['Webhooks', 'docs/guides/webhooks.md'],
      ['Testing', 'docs/guides/testing.md'],
      ['Refund a customer', 'docs/guides/refunds.md'],
      ['Authorize and capture', 'docs/guides/holds.md'],
      ['Pay out to many', 'docs/guides/payouts.md'],
      ['Exchange two currencies', 'docs/guides/exchange.md'],
      ['Reconcile with statements', statementsPage],
      ['Prove a payment', 'docs/guides/receipts.md'],
      ['Limit what a key can spend', limitsPage],
    ] as const
  ).map(pageOf),
)
/** Sets the variables that all guides use. */
const { steps: preparation } = await pageOf(['Guides', 'docs/guides/README.md'])

let system: System
beforeAll(async () => {
  await findPrograms(['python3', 'curl', 'openssl'].map(name => ({ names: [name], aptPackage: name })))
  system = await startSystem()
  await system.startCourier()
})
afterAll(() => system.stop())

const names = ['Main', 'Savings', 'Travel']

type Demo = { workspaceId: string; apiKey: string; apiSecret: string; wallets: { walletId: string }[] }

async function newDemo(): Promise<Demo> {
  const { admin } = system
  const tenant = await createTenant(system)
  const { workspaceId } = tenant
  const wallets = []
  for (const [at, { currency, balance }] of system.wallets.entries())
    wallets.push({
      walletId: await createWallet({ admin, workspaceId }, { name: names[at]!, currency, deposits: [balance] }),
    })
  return { ...tenant, wallets }
}

/** A directory like the checkout of a reader, in which the service has been started. */
async function checkout(demo: Demo): Promise<string> {
  const directory = await mkdtemp(join(inject('runDir'), 'guide-'))
  for (const name of ['node_modules', 'cli', 'examples', 'test']) await symlink(join(root, name), join(directory, name))
  await mkdir(join(directory, '.data'))
  const { baseUrl, coreUrl, adminToken } = system
  await writeFile(join(directory, '.data/demo.json'), JSON.stringify({ baseUrl, ...demo }))
  await writeFile(join(directory, '.data/core.json'), JSON.stringify({ coreUrl, adminToken }))
  return directory
}

const separator = '\u001e'

/** A delivery that is not reported yet when its webhook changes is repeated. A reader does not type that fast. */
const changesWebhook = /webhook\/command\/rotate|PAUSED/
const untilDelivered =
  "until node cli/admin.ts webhook list --workspace $WORKSPACE | grep -q ' ACTIVE  *[0-9][0-9]*  *0 '; do sleep 0.2; done"

/** The output of each step, all in one shell. */
async function run(steps: Step[], directory: string): Promise<string[]> {
  // Without npm, which takes longer than the command.
  const commands = steps.map(({ command }) =>
    (changesWebhook.test(command) ? `${untilDelivered}\n${command}` : command)
      .replaceAll(/\bnpm run --silent (\w+) --/g, 'node cli/$1.ts')
      .replaceAll(/\bnpm start\b/g, 'node cli/start.ts'),
  )
  const script = commands.map(command => `${command}\nprintf '\\036'`).join('\n')
  const { PATH, NODE_COMPILE_CACHE } = process.env
  const env = { PATH: `${join(process.execPath, '..')}:${PATH}`, NODE_COMPILE_CACHE, HOME: directory }
  const shell = spawn('bash', ['-c', `exec 2>&1\n${script}`], {
    cwd: directory,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return (await text(shell.stdout)).split(separator)
}

async function expectOutputs(before: Step[], { steps, text: page }: Page, demo: Demo): Promise<void> {
  const directory = await checkout(demo)
  for (const [, block, name] of page.matchAll(/^```(?:ts|python)\n(\S+ (\S+\.(?:ts|py))\n.*?)^```$/gms))
    await writeFile(join(directory, name!), block!)
  const outputs = (await run([...before, ...steps], directory)).slice(before.length)
  for (const [at, { command, output }] of steps.entries())
    expect(masked(outputs[at] ?? 'the shell has exited'), command).toMatch(patternOf(output))
}

// First, while there is one workspace, whose counts the page shows.
test('README.md: the commands print what the page shows', async () => {
  await expectOutputs([], readme, system)
})

test.each(guides)('$title: the commands print what the page shows', async page => {
  expect(page.text).toMatch(new RegExp(`^# ${page.title}\n`))
  expect(page.steps.length).toBeGreaterThan(1)
  const demo = await newDemo()
  if (page.path === statementsPage) await moveTransfersToPast(system.database.ownerUrl, demo.workspaceId)
  if (page.path === limitsPage) await until('the commands run on one day', () => Date.now() % dayMs < dayMs - 60_000)
  await expectOutputs(preparation, page, demo)
})

test('examples/shop/README.md: the commands print what the page shows', async () => {
  const shop = await pageOf(['A shop', 'examples/shop/README.md'])
  await expectOutputs([{ command: `export SHOP_PORT=${shopPort}`, output: '' }], shop, await newDemo())
})

test('every guide is run, and its code is in blocks that are run', async () => {
  const index = await read('docs/guides/README.md')
  const linked = [...index.matchAll(/^- \[[^\]]+\]\(([^)]+)\)/gm)].map(([, path]) => join('docs/guides', path!))
  expect(linked.filter(path => path !== 'docs/versioning.md').sort()).toEqual(guides.map(({ path }) => path).sort())
  for (const { text: page, path } of guides) {
    const blocks = [...page.matchAll(/^```(.*)\n(.*)\n/gm)].filter((_, at) => at % 2 === 0)
    for (const [, language, line] of blocks)
      expect(`${path}: ${language} ${line}`).toMatch(/: (console \$ |ts \/\/ \S+\.ts$|python # \S+\.py$)/)
  }
})
