import { spawn } from 'node:child_process'
import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { type System, startSystem } from './setup/system.ts'
import { createTenant, createWallet } from './setup/workspaces.ts'

/** Runs the commands of docs/guides.md on a demo workspace like that of `npm start`, and compares their output. */

const root = fileURLToPath(new URL('../', import.meta.url))
const page = await readFile(join(root, 'docs/guides.md'), 'utf8')

type Step = { command: string; output: string }

/** The commands in the blocks of a console, each with the output that the page shows. */
const guides = page.split(/^## /m).map(section => ({
  title: section.slice(0, section.indexOf('\n')),
  steps: [...section.matchAll(/^```console\n(.*?)^```$/gms)].flatMap(([, block]) => stepsOf(block!)),
}))

function stepsOf(block: string): Step[] {
  return block
    .split(/^\$ /m)
    .slice(1)
    .map(step => ({ command: step.slice(0, step.indexOf('\n')), output: step.slice(step.indexOf('\n') + 1) }))
}

let system: System
let environment: NodeJS.ProcessEnv
beforeAll(async () => {
  system = await startSystem()
  const { admin, baseUrl, coreUrl, adminToken } = system
  const demo = await createTenant(system)
  const { workspaceId } = demo
  for (const [name, currency, amount] of [
    ['Main', 'USD', '1000.00'],
    ['Savings', 'USD', '250.00'],
    ['Travel', 'EUR', '500.00'],
  ] as const)
    await createWallet({ admin, workspaceId }, { name, currency, deposits: [amount] })
  const dataDir = await mkdtemp(join(inject('runDir'), 'guides-'))
  await writeFile(join(dataDir, 'demo.json'), JSON.stringify({ ...demo, baseUrl }))
  await writeFile(join(dataDir, 'core.json'), JSON.stringify({ coreUrl, adminToken }))
  environment = { PATH: process.env.PATH, DATA_DIR: dataDir, WORKSPACE: workspaceId }
})
afterAll(() => system.stop())

/** The wallets as variables of the shell, which a reader sets by hand: Desk USD is DESK_USD. */
async function walletVariables(): Promise<NodeJS.ProcessEnv> {
  const workspaceId = environment.WORKSPACE!
  const { content } = await system.admin.wallets.list.query({ workspaceId, caller: { requestId: 'guides' } })
  return Object.fromEntries(content.map(({ name, walletId }) => [name.toUpperCase().replaceAll(' ', '_'), walletId]))
}

async function run(command: string): Promise<string> {
  // Without npm, which takes longer than the command.
  const script = command.replace(/^npm run --silent (\w+) --/, `'${process.execPath}' cli/$1.ts`)
  expect(script).not.toBe(command)
  const env = { ...environment, ...(await walletVariables()) }
  return text(spawn('bash', ['-c', script], { cwd: root, env, stdio: ['ignore', 'pipe', 'inherit'] }).stdout)
}

/** Replaces what differs from run to run. */
function masked(output: string): string {
  return output
    .replaceAll(/\b([a-z]{3})_[0-9a-z]{26}\b/g, '$1_ID')
    .replaceAll(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\b/g, 'TIME')
}

/** A pattern for output in which a line of `…` stands for any number of lines. */
function patternOf(shown: string): RegExp {
  const lines = masked(shown).trimEnd().split('\n')
  const literal = (line: string) => line.replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&')
  return new RegExp(`^${lines.map(line => (line.trim() === '…' ? '(.*\\n)+' : `${literal(line)}\\n`)).join('')}$`)
}

test('the commands of all guides, one after the other, print what the page shows', async () => {
  for (const { command, output } of guides.flatMap(({ steps }) => steps))
    expect(masked(await run(command)), command).toMatch(patternOf(output))
})

test('every guide has commands', () => {
  expect(guides.filter(({ steps }) => steps.length > 0).map(({ title }) => title)).toEqual([
    'Refund a customer',
    'Authorize and capture',
    'Pay out to many',
    'Exchange two currencies',
    'Keep a copy in step',
  ])
})
