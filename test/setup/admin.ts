/** For tests of the commands of `npm run admin`, against a real core. */
import { createCoreClient } from '@workspace-wallet/core-client'
import { afterAll, expect, test } from 'vitest'
import { commands } from '../../cli/admin/commands/all.ts'
import { type Ran, root, runAdminProgram } from './admin-command.ts'
import { execute } from './database.ts'
import { startSystem } from './system.ts'
import { makeTempDir } from './temp.ts'

export { adminProgram as script, root } from './admin-command.ts'

export const dataDir = await makeTempDir('admin')
export const system = await startSystem({ gateways: 0 })
export const { coreUrl, adminToken, admin: core } = system
export const throughCore = { CORE_URL: coreUrl, CORE_TOKEN: adminToken }
export const { PATH, NODE_COMPILE_CACHE } = process.env
const used = new Set<string>()

afterAll(() => system.stop())

/** Changes a row as somebody who has no keys. */
export const modify = (table: string, uuid: string) =>
  execute(
    system.database.serviceUrl,
    `update ${table} set updated_at = now(), revision = revision + 1 where id = '${uuid}'`,
  )

export function run(args: string[], environment: NodeJS.ProcessEnv = throughCore, cwd = root): Promise<Ran> {
  return runAdminProgram(args, { PATH, NODE_COMPILE_CACHE, DATA_DIR: dataDir, ...environment }, cwd)
}

/** Runs a command that succeeds, with --json: one JSON object on one line, and nothing on standard error. */
export async function json(line: string, ...texts: string[]): Promise<Record<string, unknown>> {
  const { exitCode, stdout, stderr } = await run([...words(line), ...texts, '--json'])
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  expect(stdout).toMatch(/^\{[^\n]*\}\n$/)
  return JSON.parse(stdout)
}

/** Runs a command that succeeds, and returns its text. */
export async function text(line: string, ...texts: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await run([...words(line), ...texts])
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  return stdout
}

/** Runs a command that fails: nothing on standard output, one sentence on standard error. */
export async function fails(exitCode: number, line: string, ...texts: string[]): Promise<string> {
  return sentence(exitCode, await run([...words(line), ...texts]))
}

export function sentence(exitCode: number, ran: Ran): string {
  expect(ran).toMatchObject({ exitCode, stdout: '' })
  expect(ran.stderr).toMatch(/^\S[^\n]*[.?]\n$/)
  return ran.stderr.trimEnd()
}

export function words(line: string): string[] {
  const split = line.split(' ').filter(word => word !== '')
  used.add(split.slice(0, 2).join(' '))
  return split
}

export async function newWorkspace(): Promise<string> {
  const { workspaceId } = await core.workspaces.create.mutate({ name: 'Test' })
  await core.members.add.mutate({ workspaceId, userId: 'ada' })
  return workspaceId
}

export async function newKey(workspaceId: string): Promise<string> {
  const { apiKey } = await core.apiKeys.create.mutate({ workspaceId, ownerUserId: 'ada', scopes: ['wallet:read'] })
  return apiKey
}

export async function newWallet(workspaceId: string, currency = 'USD'): Promise<string> {
  const { walletId } = await core.wallets.create.mutate({ workspaceId, currency, name: 'Main' })
  return walletId
}

export async function keyRecord(workspaceId: string, apiKey: string) {
  const { keys } = await core.apiKeys.list.query({ workspaceId })
  return keys.find(key => key.apiKey === apiKey)
}

export async function balanceOf(workspaceId: string, walletId: string): Promise<string> {
  const caller = { requestId: 'test' }
  const { balance } = await core.wallets.balance.query({ workspaceId, walletId, caller })
  return balance.toFixed(2)
}

export const id = (prefix: string) => expect.stringMatching(new RegExp(`^${prefix}_[0-9a-z]{26}$`))
export const secret = expect.stringMatching(/^[\w-]{43}$/)
export const isoTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

export const caller = { requestId: 'test' }
export const service = createCoreClient({ url: coreUrl, token: system.serviceToken })
afterAll(() => service.close())

/** A workspace with a wallet that holds 100 USD, and an empty one. */
export async function newWallets() {
  const workspaceId = await newWorkspace()
  const [source, target] = [await newWallet(workspaceId), await newWallet(workspaceId)]
  await core.wallets.deposit.mutate({ workspaceId, walletId: source, amount: '100', bizId: 'start' })
  return { workspaceId, source, target }
}
type Wallets = Awaited<ReturnType<typeof newWallets>>

export function pay({ workspaceId, source, target }: Wallets, bizId: string, draw: { holdId?: string } = {}) {
  const order = { sourceWalletId: source, targetWalletId: target, amount: '30.00', currency: 'USD', bizId, ...draw }
  return service.transfers.create.mutate({ workspaceId, caller, order })
}

export function reserve({ workspaceId, source }: Wallets, bizId: string, amount: string) {
  const hold = { walletId: source, amount, currency: 'USD', expiresInSeconds: 3600, bizId }
  return service.holds.create.mutate({ workspaceId, caller, hold })
}

/** A test that those of its file have run every command of these nouns. It must be the last one of the file. */
export function testEveryCommandOf(...nouns: string[]): void {
  test(`these tests have run every command of ${nouns.join(', ')}`, () => {
    const expected = commands.filter(({ noun }) => nouns.includes(noun)).map(({ noun, verb }) => `${noun} ${verb}`)
    expect(expected.filter(name => !used.has(name))).toEqual([])
  })
}
