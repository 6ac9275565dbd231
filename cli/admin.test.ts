/** Runs `npm run admin` as its users do: in a separate process, against a real core. */
import { execFile, spawn, spawnSync } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { batchType, scopes, uuidFromId } from '@workspace-wallet/contract'
import { createCoreClient } from '@workspace-wallet/core-client'
import { afterAll, describe, expect, test } from 'vitest'
import { connect, execute, query } from '../test/setup/database.ts'
import { startFaultProxy } from '../test/setup/fault-proxy.ts'
import { signRows } from '../test/setup/sign-rows.ts'
import { type System, startSystem } from '../test/setup/system.ts'
import { makeTempDir } from '../test/setup/temp.ts'
import { until } from '../test/setup/until.ts'
import { commands } from './admin/commands/all.ts'

interface Ran {
  exitCode: number
  stdout: string
  stderr: string
}

const root = fileURLToPath(new URL('../', import.meta.url))
const script = fileURLToPath(new URL('./admin.ts', import.meta.url))
const dataDir = await makeTempDir('admin')
const system = await startSystem({ gateways: 0 })
const { coreUrl, adminToken, admin: core } = system
const throughCore = { CORE_URL: coreUrl, CORE_TOKEN: adminToken }
const { PATH, NODE_COMPILE_CACHE } = process.env
const used = new Set<string>()

afterAll(() => system.stop())

/** Changes a row as somebody who has no keys. */
const modify = (table: string, uuid: string) =>
  execute(
    system.database.serviceUrl,
    `update ${table} set updated_at = now(), revision = revision + 1 where id = '${uuid}'`,
  )

function run(args: string[], environment: NodeJS.ProcessEnv = throughCore, cwd = root): Promise<Ran> {
  const { promise, resolve } = Promise.withResolvers<Ran>()
  const env = { PATH, NODE_COMPILE_CACHE, DATA_DIR: dataDir, ...environment }
  execFile(process.execPath, [script, ...args], { cwd, env }, (error, stdout, stderr) => {
    resolve({ exitCode: error ? Number(error.code) : 0, stdout, stderr })
  })
  return promise
}

/** Runs a command that succeeds, with --json: one JSON object on one line, and nothing on standard error. */
async function json(line: string, ...texts: string[]): Promise<Record<string, unknown>> {
  const { exitCode, stdout, stderr } = await run([...words(line), ...texts, '--json'])
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  expect(stdout).toMatch(/^\{[^\n]*\}\n$/)
  return JSON.parse(stdout)
}

/** Runs a command that succeeds, and returns its text. */
async function text(line: string, ...texts: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await run([...words(line), ...texts])
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  return stdout
}

/** Runs a command that fails: nothing on standard output, one sentence on standard error. */
async function fails(exitCode: number, line: string, ...texts: string[]): Promise<string> {
  return sentence(exitCode, await run([...words(line), ...texts]))
}

function sentence(exitCode: number, ran: Ran): string {
  expect(ran).toMatchObject({ exitCode, stdout: '' })
  expect(ran.stderr).toMatch(/^\S[^\n]*[.?]\n$/)
  return ran.stderr.trimEnd()
}

function words(line: string): string[] {
  const split = line.split(' ').filter(word => word !== '')
  used.add(split.slice(0, 2).join(' '))
  return split
}

async function newWorkspace(): Promise<string> {
  const { workspaceId } = await core.workspaces.create.mutate({ name: 'Test' })
  await core.members.add.mutate({ workspaceId, userId: 'ada' })
  return workspaceId
}

async function newKey(workspaceId: string): Promise<string> {
  const { apiKey } = await core.apiKeys.create.mutate({ workspaceId, ownerUserId: 'ada', scopes: ['wallet:read'] })
  return apiKey
}

async function newWallet(workspaceId: string, currency = 'USD'): Promise<string> {
  const { walletId } = await core.wallets.create.mutate({ workspaceId, currency, name: 'Main' })
  return walletId
}

async function keyRecord(workspaceId: string, apiKey: string) {
  const { keys } = await core.apiKeys.list.query({ workspaceId })
  return keys.find(key => key.apiKey === apiKey)
}

async function balanceOf(workspaceId: string, walletId: string): Promise<string> {
  const caller = { requestId: 'test' }
  const { balance } = await core.wallets.balance.query({ workspaceId, walletId, caller })
  return balance.toFixed(2)
}

const id = (prefix: string) => expect.stringMatching(new RegExp(`^${prefix}_[0-9a-z]{26}$`))
const secret = expect.stringMatching(/^[\w-]{43}$/)
const isoTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

describe('workspaces and members', () => {
  test('workspace create prints the ID, and accepts any letters in the name', async () => {
    expect(await json('workspace create --name', 'Ünïcode & Söhne 银行')).toEqual({ workspaceId: id('wsp') })
    expect(await text('workspace create --name Acme')).toMatch(/^Created workspace wsp_\w{26}\.\n$/)
  })

  test('workspace delete is rejected while wallets hold money, unless it is forced', async () => {
    const workspaceId = await newWorkspace()
    const walletId = await newWallet(workspaceId)
    await core.wallets.deposit.mutate({ workspaceId, walletId, amount: '5', bizId: randomUUID() })
    expect(await fails(1, `workspace delete --workspace ${workspaceId}`)).toContain(
      'withdraw it first, or give --force',
    )
    expect(await json(`workspace delete --workspace ${workspaceId} --force`)).toEqual({ workspaceId, deleted: true })
    expect(await fails(1, `workspace delete --workspace ${workspaceId}`)).toBe(`There is no workspace ${workspaceId}.`)
    const empty = await newWorkspace()
    expect(await text(`workspace delete --workspace ${empty}`)).toBe(
      `Deleted workspace ${empty}. Its keys no longer work; its history is kept.\n`,
    )
  })

  test('member add and remove fail the second time', async () => {
    const workspaceId = await newWorkspace()
    const flags = `--workspace ${workspaceId} --user grace@example.com`
    expect(await json(`member add ${flags}`)).toEqual({ workspaceId, userId: 'grace@example.com' })
    expect(await fails(1, `member add ${flags}`)).toContain('is a member of')
    expect(await json(`member remove ${flags}`)).toEqual({ workspaceId, userId: 'grace@example.com' })
    expect(await fails(1, `member remove ${flags}`)).toContain('is not a member of')
    expect(await text(`member add ${flags}`)).toBe(`Added grace@example.com to workspace ${workspaceId}.\n`)
    expect(await text(`member remove ${flags}`)).toBe(
      `Removed grace@example.com from workspace ${workspaceId}. The member's keys no longer work.\n`,
    )
  })
})

describe('keys', () => {
  test('key create prints the secret, and says that it is not shown again', async () => {
    const workspaceId = await newWorkspace()
    const flags = `--workspace ${workspaceId} --owner ada --scopes wallet:read,transfer:create`
    const issued = await json(`key create ${flags}`)
    expect(issued).toEqual({ apiKey: id('ak'), apiSecret: secret })
    expect(await text(`key create ${flags}`)).toMatch(
      /^API key {5}ak_\w{26}\nAPI secret {2}[\w-]{43}\n\nStore the secret now\. It is not shown again\.\n$/,
    )
    expect(await keyRecord(workspaceId, String(issued.apiKey))).toMatchObject({
      ownerUserId: 'ada',
      status: 'ACTIVE',
      scopes: ['wallet:read', 'transfer:create'],
      ipAllowlist: [],
      expiresAt: null,
    })
  })

  test('key create accepts addresses, a name, and an expiry as a date, a time or a duration', async () => {
    const workspaceId = await newWorkspace()
    const flags = `--workspace ${workspaceId} --owner ada --scopes wallet:read`
    const full = await json(
      `key create ${flags} --ips 203.0.113.0/24,2001:db8::1 --expires 2099-01-31 --name`,
      'Night job',
    )
    expect(await keyRecord(workspaceId, String(full.apiKey))).toMatchObject({
      ipAllowlist: ['203.0.113.0/24', '2001:db8::1'],
      expiresAt: new Date('2099-01-31T00:00:00Z'),
      name: 'Night job',
    })
    const timed = await json(`key create ${flags} --expires 2099-01-31T12:30:00+02:00`)
    expect((await keyRecord(workspaceId, String(timed.apiKey)))?.expiresAt).toEqual(new Date('2099-01-31T10:30:00Z'))
    const before = Date.now()
    const lasting = await json(`key create ${flags} --expires 90d`)
    const expiresAt = (await keyRecord(workspaceId, String(lasting.apiKey)))?.expiresAt?.getTime() ?? 0
    expect(expiresAt - before).toBeGreaterThanOrEqual(90 * 86_400_000)
    expect(expiresAt - Date.now()).toBeLessThanOrEqual(90 * 86_400_000)
  })

  test('key create rejects an owner who is not a member, unknown scopes, invalid addresses and a past expiry', async () => {
    const workspaceId = await newWorkspace()
    const command = `key create --workspace ${workspaceId} --owner`
    expect(await fails(1, `${command} eve --scopes wallet:read`)).toContain('add the member first')
    expect(await fails(2, `${command} ada --scopes wallet:reed`)).toContain('did you mean wallet:read?')
    expect(await fails(2, `${command} ada --scopes`, '')).toContain('needs at least one of wallet:read')
    expect(await fails(1, `${command} ada --scopes wallet:read --ips 203.0.113.0/33`)).toContain('nor a CIDR block')
    expect(await fails(1, `${command} ada --scopes wallet:read --expires 2020-01-01`)).toContain('in the past')
    expect(await fails(2, `${command} ada --scopes wallet:read --expires tomorrow`)).toContain('2027-01-31')
    expect((await core.apiKeys.list.query({ workspaceId })).keys).toEqual([])
  })

  test('key list prints all keys, those of a workspace, or one, without secrets', async () => {
    const workspaceId = await newWorkspace()
    const [first, second] = [await newKey(workspaceId), await newKey(workspaceId)]
    const listed = await json(`key list --workspace ${workspaceId}`)
    const record = {
      workspaceId,
      ownerUserId: 'ada',
      name: '',
      status: 'ACTIVE',
      scopes: ['wallet:read'],
      ipAllowlist: [],
      expiresAt: null,
      oldSecretUntil: null,
      lastUsedAt: null,
      createdAt: isoTime,
      updatedAt: isoTime,
      isModified: false,
    }
    expect(listed).toEqual({
      keys: [
        { apiKey: first, ...record },
        { apiKey: second, ...record },
      ],
    })
    expect(await json(`key list --key ${second}`)).toEqual({ keys: [{ apiKey: second, ...record }] })
    const all = (await json('key list')) as { keys: { apiKey: string }[] }
    expect(all.keys.map(key => key.apiKey)).toEqual(expect.arrayContaining([first, second]))
    const [headings, ...rows] = (await text(`key list --workspace ${workspaceId}`)).trimEnd().split('\n')
    expect(headings).toMatch(/^KEY +STATUS +WORKSPACE +OWNER +SCOPES +FROM +EXPIRES +OLD SECRET +LAST USED +NAME$/)
    expect(rows).toHaveLength(2)
    expect(rows[0]).toMatch(new RegExp(`^${first} +ACTIVE +${workspaceId} +ada +wallet:read +any +never +no +never$`))
    expect(await text(`key list --workspace ${await newWorkspace()}`)).toBe('No keys found.\n')
    await modify('api_key', uuidFromId('apiKey', first)!)
    expect((await text(`key list --key ${first}`)).split('\n')[1]).toMatch(
      new RegExp(`^${first} +MODIFIED +${workspaceId} `),
    )
    await core.apiKeys.delete.mutate({ apiKey: first })
  })

  test('a name cannot control the terminal of whoever lists it', async () => {
    const workspaceId = await newWorkspace()
    const create = (name: string) =>
      core.apiKeys.create.mutate({ workspaceId, ownerUserId: 'ada', scopes: ['wallet:read'], name })
    await expect(create('\u001b[2Jgone')).rejects.toThrow('name: must not contain a control character')
    await create('gone\u202e')
    const listed = await text(`key list --workspace ${workspaceId}`)
    expect(listed).toContain('gone\uFFFD')
    expect(listed).not.toContain('\u202e')
  })

  test('key disable, enable and delete', async () => {
    const workspaceId = await newWorkspace()
    const apiKey = await newKey(workspaceId)
    expect(await json(`key disable --key ${apiKey}`)).toEqual({ apiKey })
    expect((await keyRecord(workspaceId, apiKey))?.status).toBe('DISABLED')
    expect(await text(`key enable --key ${apiKey}`)).toBe(`Enabled key ${apiKey}.\n`)
    expect((await keyRecord(workspaceId, apiKey))?.status).toBe('ACTIVE')
    expect(await json(`key delete --key ${apiKey}`)).toEqual({ apiKey })
    for (const command of ['key disable', 'key rotate', 'key list'])
      expect(await fails(1, `${command} --key ${apiKey}`)).toBe(`There is no key ${apiKey}.`)
  })

  test('key rotate replaces the secret; the old one stops at once or after the grace period', async () => {
    const workspaceId = await newWorkspace()
    const { apiKey, apiSecret } = await json(`key create --workspace ${workspaceId} --owner ada --scopes wallet:read`)
    const rotated = await json(`key rotate --key ${apiKey}`)
    expect(rotated).toEqual({ apiKey, apiSecret: secret })
    expect(rotated.apiSecret).not.toBe(apiSecret)
    expect(await text(`key rotate --key ${apiKey} --grace 24h`)).toContain('It is not shown again')
    const previous = 'select count(*) from api_key where previous_secret_until > now() +'
    await execute(system.database.ownerUrl, `do $$ begin assert (${previous} interval '23 hours') = 1; end $$`)
    await execute(system.database.ownerUrl, `do $$ begin assert (${previous} interval '24 hours') = 0; end $$`)
    const again = await fails(1, `key rotate --key ${apiKey} --grace 24h`)
    expect(again).toMatch(/^The previous secret is valid until \S+Z, .*: wait until then, or give --force\.$/)
    expect(await json(`key rotate --key ${apiKey} --grace 1h --force`)).toEqual({ apiKey, apiSecret: secret })
    expect(await fails(2, `key rotate --key ${apiKey} --grace 31d`)).toBe('--grace must be at most 30d.')
    expect(await fails(2, `key rotate --key ${apiKey} --grace 1.5h`)).toContain('24h')
  })

  test('key set-expiry sets a time, now or never', async () => {
    const workspaceId = await newWorkspace()
    const apiKey = await newKey(workspaceId)
    const command = `key set-expiry --key ${apiKey} --expires`
    const expiresAt = '2099-01-31T00:00:00.000Z'
    expect(await json(`${command} 2099-01-31`)).toEqual({ apiKey, expiresAt })
    expect((await keyRecord(workspaceId, apiKey))?.expiresAt).toEqual(new Date(expiresAt))
    expect(await text(`${command} 2099-01-31`)).toBe(`Key ${apiKey} expires at ${expiresAt}.\n`)
    expect(await text(`${command} now`)).toBe(`Key ${apiKey} has expired and no longer works.\n`)
    const ended = (await keyRecord(workspaceId, apiKey))?.expiresAt?.getTime()
    expect(ended).toBeGreaterThan(Date.parse('2020-01-01'))
    expect(ended).toBeLessThanOrEqual(Date.now())
    expect(await text(`${command} never`)).toBe(`Key ${apiKey} never expires.\n`)
    expect((await keyRecord(workspaceId, apiKey))?.expiresAt).toBeNull()
    expect(await fails(2, `${command} later`)).toContain('2027-01-31')
  })

  test('key set-scopes and set-ips replace the old values; an empty list of addresses allows all', async () => {
    const workspaceId = await newWorkspace()
    const apiKey = await newKey(workspaceId)
    expect(await json(`key set-scopes --key ${apiKey} --scopes`, 'transfer:read, transfer:create')).toEqual({
      apiKey,
      scopes: ['transfer:read', 'transfer:create'],
    })
    expect(await text(`key set-scopes --key ${apiKey} --scopes wallet:read`)).toBe(
      `Key ${apiKey} now has the scopes wallet:read.\n`,
    )
    expect(await json(`key set-ips --key ${apiKey} --ips 203.0.113.7,2001:db8::/32`)).toEqual({
      apiKey,
      ipAllowlist: ['203.0.113.7', '2001:db8::/32'],
    })
    expect(await keyRecord(workspaceId, apiKey)).toMatchObject({
      scopes: ['wallet:read'],
      ipAllowlist: ['203.0.113.7', '2001:db8::/32'],
    })
    expect(await fails(1, `key set-ips --key ${apiKey} --ips 203.0.113.7,,10.0.0.1`)).toContain('CIDR block')
    expect(await text(`key set-ips --key ${apiKey} --ips`, '')).toBe(
      `Key ${apiKey} can now be used from any address.\n`,
    )
    expect(await json(`key set-ips --key ${apiKey} --ips=`)).toEqual({ apiKey, ipAllowlist: [] })
    expect((await keyRecord(workspaceId, apiKey))?.ipAllowlist).toEqual([])
  })
})

describe('wallets', () => {
  test('wallet create creates an empty, active wallet', async () => {
    const workspaceId = await newWorkspace()
    const made = await json(`wallet create --workspace ${workspaceId} --currency USD --name`, 'Petty cash')
    expect(made).toEqual({ walletId: id('wal'), bizId: null })
    expect(await balanceOf(workspaceId, String(made.walletId))).toBe('0.00')
    expect(await text(`wallet create --workspace ${workspaceId} --currency JPY --name Yen`)).toMatch(
      /^Created wallet wal_\w{26}\.\n$/,
    )
    const command = `wallet create --workspace ${workspaceId} --name Main --currency`
    const named = await json(`${command} USD --biz-id main`)
    expect(named).toEqual({ walletId: id('wal'), bizId: 'main' })
    expect(await text(`${command} USD --biz-id main`)).toBe(`Created wallet ${named.walletId}, with the bizId main.\n`)
    expect(await fails(1, `${command} EUR --biz-id main`)).toContain('The bizId main belongs to another')
    expect(await fails(2, `${command} USD --biz-id ${named.walletId}`)).toContain('not be the ID of a wallet')
    expect(await fails(2, `${command} usd`)).toContain('in upper case')
    expect(await fails(2, `${command} XYZ`)).toContain('must be a currency code')
  })

  test('wallet deposit and withdraw move money, and print the bizId and the balance', async () => {
    const workspaceId = await newWorkspace()
    const walletId = await newWallet(workspaceId)
    const flags = `--workspace ${workspaceId} --wallet ${walletId}`
    const receipt = { transferId: id('trf'), walletId, currency: 'USD', holdId: null, createdAt: isoTime }
    expect(await json(`wallet deposit ${flags} --amount 100.5`)).toEqual({
      ...receipt,
      type: 'DEPOSIT',
      amount: '100.5',
      bizId: expect.stringMatching(/^deposit-[0-9a-f-]{36}$/),
      balance: '100.50',
    })
    expect(await json(`wallet withdraw ${flags} --amount 0.25 --biz-id payout-1`)).toEqual({
      ...receipt,
      type: 'WITHDRAWAL',
      amount: '0.25',
      bizId: 'payout-1',
      balance: '100.25',
    })
    expect(await text(`wallet deposit ${flags} --amount 10 --biz-id topup-1`)).toBe(
      `Deposited 10 USD into wallet ${walletId}, with the bizId topup-1. The balance is now 110.25 USD.\n`,
    )
    expect(await text(`wallet withdraw ${flags} --amount 0.25`)).toMatch(
      /^Withdrew 0\.25 USD from wallet wal_\w{26}, with the bizId withdraw-[0-9a-f-]{36}\. The balance is now 110\.00 USD\.\n$/,
    )
  })

  test('a bizId moves money once, and cannot be used for another amount', async () => {
    const workspaceId = await newWorkspace()
    const walletId = await newWallet(workspaceId)
    const command = `wallet deposit --workspace ${workspaceId} --wallet ${walletId} --biz-id once`
    const first = await json(`${command} --amount 7`)
    expect(await json(`${command} --amount 7.00`)).toEqual(first)
    expect(await fails(1, `${command} --amount 8`)).toContain('The bizId once belongs to another deposit')
    expect(await balanceOf(workspaceId, walletId)).toBe('7.00')
  })

  test('a deposit whose answer is lost prints the bizId with which it can be repeated', async () => {
    const workspaceId = await newWorkspace()
    const walletId = await newWallet(workspaceId)
    const command = `wallet deposit --workspace ${workspaceId} --wallet ${walletId} --amount 3`
    // Core answers after the commit, so the deposit is done.
    const path = await startFaultProxy(Number(new URL(coreUrl).port))
    void path.fail({ in: 'answer', at: batchType, passes: 'none', by: 'reset' })
    const through = { CORE_URL: path.url, CORE_TOKEN: adminToken }
    const lost = sentence(1, await run(words(command), through))
    path.cut()
    const [, bizId] = /repeat the command with --biz-id (\S+),/.exec(lost) ?? []
    expect(bizId).toMatch(/^deposit-/)
    expect(await json(`${command} --biz-id ${bizId}`)).toMatchObject({ bizId, balance: '3.00' })
  })

  test('invalid amounts and insufficient balances are rejected', async () => {
    const workspaceId = await newWorkspace()
    const walletId = await newWallet(workspaceId)
    const yen = await newWallet(workspaceId, 'JPY')
    const on = (wallet: string) => `--workspace ${workspaceId} --wallet ${wallet} --amount`
    expect(await fails(2, `wallet deposit ${on(walletId)} -5`)).toContain(
      '--amount must be an amount greater than zero',
    )
    expect(await fails(1, `wallet deposit ${on(walletId)} 1.005`)).toBe(
      '--amount has too many decimals: give at most 2, like its currency.',
    )
    expect(await fails(1, `wallet deposit ${on(yen)} 1.5`)).toContain('give a whole number')
    expect(await fails(1, `wallet withdraw ${on(walletId)} 1`)).toContain('is lower than the amount')
    expect(await fails(2, `wallet deposit ${on(walletId)} 1 --biz-id wallet`)).toContain('be neither "wallet"')
    expect(await balanceOf(workspaceId, walletId)).toBe('0.00')
  })

  test('wallet freeze, unfreeze and close', async () => {
    const workspaceId = await newWorkspace()
    const walletId = await newWallet(workspaceId)
    const flags = `--workspace ${workspaceId} --wallet ${walletId}`
    await json(`wallet deposit ${flags} --amount 5`)
    const times = { createdAt: isoTime, updatedAt: isoTime }
    const record = { walletId, bizId: null, name: 'Main', currency: 'USD', balance: '5.00', ...times }
    expect(await json(`wallet freeze ${flags}`)).toEqual({ ...record, status: 'FROZEN' })
    expect(await text(`wallet freeze ${flags}`)).toBe(
      `Wallet ${walletId} is now FROZEN: only operators can unfreeze or close it.\n`,
    )
    expect(await fails(1, `wallet withdraw ${flags} --amount 5`)).toBe('The wallet is frozen: unfreeze it first.')
    expect(await json(`wallet unfreeze ${flags}`)).toEqual({ ...record, status: 'ACTIVE' })
    expect(await fails(1, `wallet close ${flags}`)).toContain(
      'holds money: withdraw or transfer it before you close the wallet',
    )
    await json(`wallet withdraw ${flags} --amount 5`)
    expect(await text(`wallet close ${flags}`)).toBe(`Wallet ${walletId} is now CLOSED.\n`)
    expect(await fails(1, `wallet unfreeze ${flags}`)).toContain('a closed wallet cannot be reopened')
    expect(await fails(1, `wallet deposit ${flags} --amount 5`)).toContain('The wallet is closed')
  })

  test("another workspace's wallet is not found", async () => {
    const walletId = await newWallet(await newWorkspace())
    const flags = `--workspace ${await newWorkspace()} --wallet ${walletId}`
    for (const command of [`wallet deposit ${flags} --amount 1`, `wallet freeze ${flags}`, `wallet close ${flags}`])
      expect(await fails(1, command)).toBe('The workspace has no such wallet: check both IDs.')
  })
})

describe('transfers, holds and events', () => {
  const caller = { requestId: 'test' }
  const service = createCoreClient({ url: coreUrl, token: system.serviceToken })
  afterAll(() => service.close())

  /** A workspace with a wallet that holds 100 USD, and an empty one. */
  async function newWallets() {
    const workspaceId = await newWorkspace()
    const [source, target] = [await newWallet(workspaceId), await newWallet(workspaceId)]
    await core.wallets.deposit.mutate({ workspaceId, walletId: source, amount: '100', bizId: 'start' })
    return { workspaceId, source, target }
  }
  type Wallets = Awaited<ReturnType<typeof newWallets>>

  function pay({ workspaceId, source, target }: Wallets, bizId: string, draw: { holdId?: string } = {}) {
    const order = { sourceWalletId: source, targetWalletId: target, amount: '30.00', currency: 'USD', bizId, ...draw }
    return service.transfers.create.mutate({ workspaceId, caller, order })
  }

  function reserve({ workspaceId, source }: Wallets, bizId: string, amount: string) {
    const hold = { walletId: source, amount, currency: 'USD', expiresInSeconds: 3600, bizId }
    return service.holds.create.mutate({ workspaceId, caller, hold })
  }

  test('transfer reverse returns a part of a transfer once, and at most all of it', async () => {
    const wallets = await newWallets()
    const { workspaceId, source, target } = wallets
    const { transferId } = await pay(wallets, 'order-1')
    const command = (amount: string, bizId: string, currency = 'USD') =>
      `transfer reverse --workspace ${workspaceId} --transfer order-1 --amount ${amount} --currency ${currency} --biz-id ${bizId}`
    const reversal = await json(`${command('10.5', 'refund-1')} --remark`, 'damaged goods')
    expect(reversal).toMatchObject({
      transferId: id('trf'),
      bizId: 'refund-1',
      amount: '10.5',
      sourceWalletId: target,
      targetWalletId: source,
      remark: 'damaged goods',
      reversesTransferId: transferId,
      reversedAmount: '0.00',
    })
    expect(await text(command('10.50', 'refund-1'))).toBe(
      `Returned 10.5 USD of transfer ${transferId} from wallet ${target} to wallet ${source}: transfer ${reversal.transferId}, with the bizId refund-1.\n`,
    )
    expect(await balanceOf(workspaceId, target)).toBe('19.50')
    expect(await fails(1, command('19.51', 'refund-2'))).toBe(
      'Only 19.50 of the transfer is not reversed yet: give a lower --amount.',
    )
    expect(await fails(1, command('10', 'order-1'))).toContain('The bizId order-1 belongs to another')
    expect(await fails(1, command('1', 'refund-2', 'EUR'))).toContain('correct --currency')
    expect(await fails(1, command('1.001', 'refund-2'))).toContain('at most 2, like its currency')
    expect(await fails(1, command('1', 'refund-2').replace('order-1', 'refund-1'))).toContain('is a reversal itself')
    expect(await fails(1, command('1', 'refund-2').replace('order-1', 'start'))).toContain('cannot be reversed')
    expect(await fails(2, `transfer reverse --workspace ${workspaceId}`)).toContain('--biz-id ID')
    expect(await balanceOf(workspaceId, target)).toBe('19.50')
  })

  test('a reversal whose answer is lost can be repeated', async () => {
    const wallets = await newWallets()
    await pay(wallets, 'order-1')
    const command = `transfer reverse --workspace ${wallets.workspaceId} --transfer order-1 --amount 30 --currency USD --biz-id refund`
    const path = await startFaultProxy(Number(new URL(coreUrl).port))
    void path.fail({ in: 'answer', at: batchType, passes: 'none', by: 'reset' })
    const lost = sentence(1, await run(words(command), { CORE_URL: path.url, CORE_TOKEN: adminToken }))
    path.cut()
    expect(lost).toBe(
      'It is unknown whether the money was moved: repeat the command with --biz-id refund, which moves it at most once.',
    )
    expect(await json(command)).toMatchObject({ bizId: 'refund' })
    expect(await balanceOf(wallets.workspaceId, wallets.source)).toBe('100.00')
  })

  test('hold list prints the holds of a workspace or a wallet, and hold release ends one', async () => {
    const wallets = await newWallets()
    const { workspaceId, source, target } = wallets
    const first = await reserve(wallets, 'booking-1', '40')
    const second = await reserve(wallets, 'booking-2', '20.00')
    const command = `hold list --workspace ${workspaceId}`
    const record = {
      walletId: source,
      currency: 'USD',
      status: 'OPEN',
      capturedAmount: '0.00',
      expiresAt: isoTime,
      reference: null,
      remark: null,
      createdAt: isoTime,
      updatedAt: isoTime,
    }
    const listed = [
      { holdId: second.holdId, bizId: 'booking-2', amount: '20.00', remainingAmount: '20.00', ...record },
      { holdId: first.holdId, bizId: 'booking-1', amount: '40', remainingAmount: '40.00', ...record },
    ]
    expect(await json(command)).toEqual({ holds: listed, total: 2 })
    expect(await json(`${command} --wallet ${source} --limit 1`)).toEqual({ holds: [listed[0]], total: 2 })
    expect(await json(`${command} --wallet ${target}`)).toEqual({ holds: [], total: 0 })
    const lines = (await text(`${command} --limit 1`)).trimEnd().split('\n')
    expect(lines[0]).toMatch(/^HOLD +STATUS +WALLET +CURRENCY +AMOUNT +CAPTURED +REMAINING +EXPIRES +BIZ ID$/)
    expect(lines[1]).toMatch(
      new RegExp(`^${second.holdId} +OPEN +${source} +USD +20\\.00 +0\\.00 +20\\.00 +\\S+Z +booking-2$`),
    )
    expect(lines.slice(2)).toEqual(['', 'There are 2 holds in all. To list more, add --limit 2.'])

    await pay(wallets, 'capture', { holdId: 'booking-1' })
    const release = `hold release --workspace ${workspaceId} --hold`
    expect(await fails(1, `${release} booking-1`)).toBe('The hold is CAPTURED, so nothing remains of it to release.')
    const released = { ...listed[0], status: 'RELEASED', remainingAmount: '0.00' }
    expect(await json(`${release} ${second.holdId}`)).toEqual(released)
    expect(await text(`${release} booking-2`)).toBe(
      `Hold ${second.holdId} is RELEASED: of 20.00 USD, 0.00 was captured, and the rest is available in wallet ${source} again.\n`,
    )
    expect(await text(`${command} --status OPEN`)).toBe('No holds found.\n')
    expect(await json(`${command} --status RELEASED`)).toEqual({ holds: [released], total: 1 })
    expect(await fails(1, `${release} booking-3`)).toBe('The workspace has no such hold: check both IDs.')
    expect(await fails(2, `${command} --status RELEASE`)).toContain('did you mean RELEASED?')
    expect(await fails(1, `hold list --workspace ${await newWorkspace()} --wallet ${source}`)).toContain(
      'no such wallet',
    )
  })

  test('limit set, list and clear limit what a key or a wallet may spend', async () => {
    const wallets = await newWallets()
    const { workspaceId, source } = wallets
    const command = `--workspace ${workspaceId} --wallet ${source} --currency USD`
    const limit = {
      apiKey: null,
      walletId: source,
      currency: 'USD',
      perTransfer: '50.00',
      perDay: '80.00',
      spentToday: '0.00',
      resetsAt: expect.stringMatching(/T00:00:00\.000Z$/),
      createdAt: isoTime,
      updatedAt: isoTime,
    }
    const set = await json(`limit set ${command} --per-transfer 50 --per-day 80.00`)
    expect(set).toEqual(limit)
    await pay(wallets, 'order-1')
    const listed = (await json(`limit list --workspace ${workspaceId}`)) as { limits: (typeof set)[] }
    // If another day has begun, the transfer may be of the day before.
    const isSameDay = listed.limits[0]?.resetsAt === set.resetsAt
    const spentToday = isSameDay ? '30.00' : expect.stringMatching(/^(0|30)\.00$/)
    expect(listed).toEqual({ limits: [{ ...limit, spentToday }] })
    expect(await text(`limit set ${command} --per-day 80.00`)).toBe(
      `${source} may spend at most 80.00 USD per day from now on.\n`,
    )
    const lines = (await text(`limit list --workspace ${workspaceId}`)).trimEnd().split('\n')
    expect(lines[0]).toMatch(/^KEY OR WALLET +CURRENCY +PER TRANSFER +PER DAY +SPENT TODAY$/)
    expect(lines[1]).toMatch(new RegExp(`^${source} +USD +unlimited +80\\.00 +\\d`))
    expect(await text(`limit clear ${command}`)).toBe(`${source} no longer has a limit in USD.\n`)
    expect(await text(`limit list --workspace ${workspaceId}`)).toBe('No limits are set.\n')
    expect(await fails(1, `limit clear ${command}`)).toContain('has no limit in USD')
    expect(await fails(2, `limit set ${command}`)).toContain('--per-transfer, --per-day or both')
    expect(await fails(2, `limit set --workspace ${workspaceId} --currency USD --per-day 1`)).toBe(
      'Set either --key or --wallet.',
    )
    expect(
      await fails(1, `limit set --workspace ${workspaceId} --wallet ${source} --currency EUR --per-day 1`),
    ).toContain('holds USD')
  })

  test('webhook list, pause, resume, seek and delete', async () => {
    const wallets = await newWallets()
    const { workspaceId } = wallets
    const list = `webhook list --workspace ${workspaceId}`
    expect(await text(list)).toBe('No webhooks found.\n')
    const caller = { requestId: 'test' }
    const url = 'https://receiver.example/events'
    const created = await service.webhooks.create.mutate({ workspaceId, caller, url, bizId: 'shop' })
    const { webhookId, position } = created
    const record = {
      webhookId,
      bizId: 'shop',
      url,
      types: [],
      concurrency: 1,
      status: 'ACTIVE',
      position,
      lastStatus: null,
      lastError: null,
      lastAttemptAt: null,
      failingSince: null,
      previousSecretUntil: null,
      createdAt: isoTime,
      updatedAt: isoTime,
    }
    expect(await json(list)).toEqual({ webhooks: [record], last: position, modified: [] })
    const lines = (await text(list)).trimEnd().split('\n')
    expect(lines[0]).toMatch(/^WEBHOOK +STATUS +POSITION +BEHIND +LAST RESULT +FAILING SINCE +BIZ ID +URL$/)
    expect(lines[1]).toMatch(new RegExp(`^${webhookId} +ACTIVE +${position} +0 +- +- +shop +${url}$`))
    const one = `--workspace ${workspaceId} --webhook ${webhookId}`
    for (let times = 0; times < 2; times++)
      expect(await json(`webhook pause ${one}`)).toEqual({ ...record, status: 'PAUSED' })
    expect(await text(`webhook resume ${one}`)).toBe(`Webhook ${webhookId} is ACTIVE at position ${position}.\n`)
    const { entries } = await core.audit.list.query({ workspaceId, target: webhookId })
    expect(entries.map(({ actor, action }) => [actor.split(':')[0], action])).toEqual([
      ['admin', 'webhook.resume'],
      ['admin', 'webhook.pause'],
      ['service', 'webhook.create'],
    ])
    expect(await text(`webhook seek ${one} --after 1`)).toBe(`Webhook ${webhookId} continues after position 1.\n`)
    expect((await text(list)).split('\n')[1]).toMatch(new RegExp(`^${webhookId} +ACTIVE +1 +${position - 1} `))
    expect(await fails(1, `webhook seek ${one} --after 1000`)).toContain(`The log ends at position ${position}`)
    for (let times = 0; times < 2; times++) expect(await json(`webhook delete ${one}`)).toEqual({ webhookId })
    expect(await fails(1, `webhook pause ${one}`)).toBe('The workspace has no such webhook: check both IDs.')
    expect(await json(list)).toEqual({ webhooks: [], last: position, modified: [] })
    const stray = await service.webhooks.create.mutate({ workspaceId, caller, url, bizId: 'stray' })
    await modify('webhook', uuidFromId('webhook', stray.webhookId)!)
    expect(await text(list)).toBe(
      `No webhooks found.\n\nModified outside the service, and without deliveries: ${stray.webhookId}. Delete them.\n`,
    )
    await core.webhooks.delete.mutate({ workspaceId, caller, webhookId: stray.webhookId })
    expect(await json(list)).toEqual({ webhooks: [], last: position, modified: [] })
  })

  test('event tail prints the last events, or all after a position; --json prints an object on each line', async () => {
    const wallets = await newWallets()
    const { workspaceId, source, target } = wallets
    await reserve(wallets, 'booking', '40.00')
    const { transferId } = await pay(wallets, 'order-1', { holdId: 'booking' })
    await json(
      `transfer reverse --workspace ${workspaceId} --transfer order-1 --amount 30.00 --currency USD --biz-id refund`,
    )
    await json(`wallet freeze --workspace ${workspaceId} --wallet ${target}`)
    const command = `event tail --workspace ${workspaceId}`
    const [heading, ...rows] = (await text(command)).trimEnd().split('\n')
    expect(heading).toMatch(/^POSITION +TIME +TYPE +WHAT$/)
    const types = rows.map(row => row.split(/ +/)[2])
    expect(types.slice(-5)).toEqual([
      'wallet.deposited',
      'hold.created',
      'transfer.completed',
      'transfer.completed',
      'wallet.frozen',
    ])
    expect(rows.map(row => Number(row.split(' ')[0]))).toEqual(rows.map((_, index) => index + 1))
    expect(rows.at(-2)).toContain(`30.00 USD from ${target} to ${source}, refund, reverses ${transferId}`)
    expect(rows.at(-1)).toMatch(new RegExp(` ${target} FROZEN \\(USD\\) by OPERATOR$`))

    const after = rows.length - 3
    const { exitCode, stdout, stderr } = await run(words(`${command} --after ${after} --json`))
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    const events = stdout
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line))
    expect(events.map(({ position, type }) => [position, type])).toEqual([
      [after + 1, 'transfer.completed'],
      [after + 2, 'transfer.completed'],
      [after + 3, 'wallet.frozen'],
    ])
    expect(events[0]).toMatchObject({
      eventId: id('evt'),
      timestamp: isoTime,
      workspaceId,
      data: {
        transfer: { transferId, amount: '30.00' },
        balances: { source: { walletId: source, balanceAfter: '70.00' }, target: { balanceAfter: '30.00' } },
        holdRemaining: '0.00',
      },
    })
    expect(await fails(1, `${command} --after ${rows.length + 1} --json`)).toBe(
      `The log ends at position ${rows.length}: give a lower --after. If it was longer before, an earlier copy of the database was restored.`,
    )
    expect(await fails(2, `${command} --after -1`)).toContain('must be a whole number')
  })

  test('event tail --follow continues after core restarts, and ends cleanly when it is interrupted', async () => {
    const wallets = await newWallets()
    const { workspaceId, source } = wallets
    const own = await system.startCore()
    // The restarted core has another port, because another program may have taken the one before.
    const path = await startFaultProxy(own.port)
    const child = spawn(
      process.execPath,
      [script, 'event', 'tail', '--workspace', workspaceId, '--after', '0', '--follow', '--json'],
      { cwd: root, env: { PATH, NODE_COMPILE_CACHE, CORE_URL: path.url, CORE_TOKEN: adminToken } },
    )
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', chunk => (stdout += chunk))
    child.stderr.on('data', chunk => (stderr += chunk))
    const exited = once(child, 'close')
    const prints = (bizId: string) => until(`it prints ${bizId}`, () => stdout.includes(`"bizId":"${bizId}"`))

    await prints('start')
    await pay(wallets, 'while-it-follows')
    await prints('while-it-follows')
    await own.stop()
    await until('it notices that core is gone', () => stderr !== '')
    await pay(wallets, 'while-core-is-gone')
    path.pointTo((await system.startCore()).port)
    await prints('while-core-is-gone')
    child.kill('SIGINT')
    expect(await exited).toEqual([0, null])
    expect(stderr).toBe('Core is unavailable. Waiting for it.\n')
    const positions = stdout
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line).position)
    expect(positions).toEqual(positions.map((_, index) => index + 1))
    expect(await balanceOf(workspaceId, source)).toBe('40.00')
  })
})

test('event tail --follow fails if another history replaces the one that it printed', async () => {
  const restored = await startSystem({ gateways: 0 })
  const { workspaceId, database } = restored
  const following = spawn(
    process.execPath,
    [script, 'event', 'tail', '--workspace', workspaceId, '--follow', '--json'],
    { cwd: root, env: { PATH, NODE_COMPILE_CACHE, CORE_URL: restored.coreUrl, CORE_TOKEN: restored.adminToken } },
  )
  const exited = once(following, 'close')
  let [stdout, stderr] = ['', '']
  following.stdout.on('data', chunk => (stdout += chunk))
  following.stderr.on('data', chunk => (stderr += chunk))
  await until('it prints the last event', () => stdout.includes('"position":6'))
  const owner = await connect(database.ownerUrl)
  const tables = ['ledger', 'wallet', 'transfer']
  for (const table of tables) await owner.query(`create temporary table earlier_${table} as table ${table}`)
  const deposit = () =>
    restored.admin.wallets.deposit.mutate({
      workspaceId,
      walletId: restored.wallets[0]!.walletId,
      amount: '1.00',
      bizId: randomUUID(),
    })
  await deposit()
  await until('it prints the next event', () => stdout.includes('"position":7'))
  await owner.query('begin; set local session_replication_role = replica')
  for (const table of tables)
    await owner.query(`delete from ${table}; insert into ${table} select * from earlier_${table}`)
  await owner.query('commit')
  await owner.end()
  await deposit()
  expect(await exited).toEqual([1, null])
  expect(stderr).toMatch(
    /^The event at position 7 is no longer evt_\w{26}, because an earlier copy of the database was restored: run the command again\.\n$/,
  )
  await restored.stop()
})

describe('ledger verify', () => {
  test('reports a sound ledger', async () => {
    const report = { workspaces: expect.any(Number), wallets: expect.any(Number), flows: expect.any(Number) }
    const sound = { ok: true, ...report, transfers: expect.any(Number), violations: [], brokenRules: [] }
    expect(await json('ledger verify')).toMatchObject(sound)
    expect(await json(`ledger verify --workspace ${system.workspaceId}`)).toMatchObject({ ...sound, workspaces: 1 })
    expect(await text(`ledger verify --workspace ${system.workspaceId}`)).toMatch(
      /^The ledger is sound: 1 workspace, \d+ wallets, \d+ transfers, \d+ flows, \d+ holds\.\n$/,
    )
  })

  test('reports a lost connection', async () => {
    const path = await startFaultProxy(Number(new URL(coreUrl).port))
    void path.fail({ in: 'answer', at: '"kind":"result"', passes: 'none', by: 'reset' })
    const through = { CORE_URL: path.url, CORE_TOKEN: adminToken }
    const ran = await run(words('ledger verify'), through)
    path.cut()
    expect(sentence(1, ran)).toContain('The connection to core was lost during the verification')
  })

  test('fails for a tampered ledger, and names the violations', async () => {
    const tamper = `alter table wallet disable trigger user; update wallet set balance = balance + 1 where name = 'Savings'`
    const tampered = await startSystem({ gateways: 0 })
    const environment = { CORE_URL: tampered.coreUrl, CORE_TOKEN: tampered.adminToken }
    await execute(tampered.database.ownerUrl, tamper)
    const asJson = await run(['ledger', 'verify', '--json'], environment)
    const asText = await run(['ledger', 'verify'], environment)
    await tampered.stop()
    const report = JSON.parse(asJson.stdout)
    expect(report.ok).toBe(false)
    expect(report.violations.length).toBeGreaterThan(0)
    expect(report.brokenRules).toContainEqual({ rule: 'wallet-balance', violations: 1 })
    expect(asText.stdout).toMatch(
      /^BROKEN RULE +VIOLATIONS +WHAT IT SAYS\ndatabase-object +\d+ (.+\n)*wallet-balance +1 (.+\n)*\nRULE +WHERE +WHAT\n/,
    )
    expect(asText.stdout).toContain(tampered.wallets[1]?.walletId)
    for (const { exitCode, stderr } of [asJson, asText]) {
      expect(exitCode).toBe(1)
      expect(stderr).toMatch(/^The ledger has \d+ violations?: [^\n]*\.\n$/)
    }
  })
})

describe('ledger checkpoint', () => {
  const newFile = (name: string) => join(dataDir, `${name}-${randomUUID()}.checkpoint`)
  const through = ({ coreUrl, adminToken }: System) => ({ CORE_URL: coreUrl, CORE_TOKEN: adminToken })

  test('writes a new file, which the ledger continues', async () => {
    const file = newFile('all')
    const taken = await json(`ledger checkpoint --out ${file}`)
    const bytes = await readFile(file)
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    const { wallets } = await json('ledger verify')
    expect(taken).toEqual({
      file,
      checkpointId: expect.any(String),
      takenAt: isoTime,
      workspaceId: null,
      wallets,
      sha256,
    })

    const workspaceId = await newWorkspace()
    await core.wallets.deposit.mutate({
      workspaceId,
      walletId: await newWallet(workspaceId),
      amount: '5',
      bizId: randomUUID(),
    })
    const { checkpointId, takenAt } = taken
    expect(await json(`ledger verify --against ${file}`)).toMatchObject({
      ok: true,
      checkpoint: { checkpointId, takenAt, workspaceId: null, wallets, fault: null },
    })
    expect(await text(`ledger verify --against ${file}`)).toContain(
      `\nIt continues the checkpoint of ${takenAt} (all workspaces, ${wallets} wallets): nothing recorded before it was changed or removed.\n`,
    )
  })

  test('of one workspace is written to a file whose name contains the time; the audit log has the actor', async () => {
    const workspaceId = await newWorkspace()
    await newWallet(workspaceId)
    const { stdout, exitCode } = await run(['ledger', 'checkpoint', '--workspace', workspaceId], throughCore, dataDir)
    expect(exitCode).toBe(0)
    const [, name] = /^File +(\S+)$/m.exec(stdout) ?? []
    expect(name).toMatch(/\/ledger-\d{8}T\d{6}Z\.checkpoint$/)
    expect(stdout).toContain(`Wrote a checkpoint of 2 wallets in ${workspaceId}, taken at `)
    const part = JSON.parse(await readFile(name!, 'utf8'))
    const rows = await query(system.database.ownerUrl, `select * from audit where target = '${part.checkpointId}'`)
    expect(rows).toEqual([
      expect.objectContaining({
        actor: 'admin:a',
        action: 'ledger.checkpoint',
        workspace_id: uuidFromId('workspace', workspaceId),
        after: { takenAt: part.takenAt, wallets: 2 },
      }),
    ])
    expect(await json(`ledger verify --workspace ${workspaceId} --against ${name}`)).toMatchObject({ ok: true })
  })

  test('never overwrites a file, and removes the file of a failed checkpoint', async () => {
    const file = newFile('kept')
    await writeFile(file, 'precious')
    expect(await fails(1, `ledger checkpoint --out ${file}`)).toBe(
      `${file} already exists, and checkpoints are not overwritten: choose another name with --out.`,
    )
    expect(await readFile(file, 'utf8')).toBe('precious')
    expect(await fails(1, `ledger checkpoint --out ${dataDir}/absent/file`)).toContain(
      'absent/file does not exist: create it, or choose another path with --out.',
    )

    const cut = newFile('cut')
    const path = await startFaultProxy(Number(new URL(coreUrl).port))
    void path.fail({ in: 'answer', at: '"chains"', passes: 'none', by: 'reset' })
    const ran = await run(['ledger', 'checkpoint', '--out', cut], { CORE_URL: path.url, CORE_TOKEN: adminToken })
    path.cut()
    expect(sentence(1, ran)).toBe(
      'The connection to core was lost during the checkpoint: run it again, and check the log of core.',
    )
    const unknown = newFile('unknown')
    expect(await fails(1, `ledger checkpoint --workspace wsp_01k9x5zq3sf4x9vtgkz3b8cdef --out ${unknown}`)).toMatch(
      /^There is no workspace wsp_/,
    )
    for (const left of [cut, unknown]) expect(existsSync(left)).toBe(false)
  })

  test('an unusable checkpoint fails the verification of a sound ledger, and the error says what to give', async () => {
    const [whole, other] = [newFile('whole'), await newWorkspace()]
    await json(`ledger checkpoint --out ${whole}`)
    const files: [string, string, string][] = [
      ['empty', '', 'it is incomplete: its last part is missing'],
      ['changed', (await readFile(whole, 'utf8')).replace('"sequence":1', '"sequence":2'), 'part 0 was changed'],
    ]
    for (const [name, text, fault] of files) {
      const file = newFile(name)
      await writeFile(file, text)
      const { exitCode, stdout, stderr } = await run(words(`ledger verify --against ${file}`))
      expect({ exitCode, stderr }).toEqual({
        exitCode: 1,
        stderr: expect.stringContaining(`The checkpoint was not compared, because ${fault}`),
      })
      expect(stdout).toMatch(/^The ledger is sound: [^\n]*\n$/)
    }
    const narrow = await run(words(`ledger verify --workspace ${other} --against ${whole}`))
    expect(narrow).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining(`it covers all workspaces, but only ${other} was verified`),
    })
    expect(await fails(1, `ledger verify --against ${whole}.absent`)).toBe(
      `Cannot read the checkpoint from ${whole}.absent (ENOENT): give a file that ledger checkpoint wrote.`,
    )
    expect(await fails(1, `ledger verify --against ${dataDir}`)).toContain('(EISDIR)')
    expect(await fails(2, 'ledger checkpoint --out', '')).toBe('--out must be the path of a file.')
  })

  test('a truncated history is found only with the checkpoint', async () => {
    const cut = await startSystem({ gateways: 0 })
    const file = newFile('before')
    const checkpoint = await run(['ledger', 'checkpoint', '--out', file], through(cut))
    // Removes the last deposit and everything that refers to it.
    await execute(
      cut.database.ownerUrl,
      `set session_replication_role = replica;
       delete from transfer where currency = 'EUR';
       update wallet set balance = 0, sequence = 0, head = '' where currency = 'EUR';
       update ledger set position = position - 1;
       delete from audit where action = 'wallet.deposit' and after ->> 'currency' = 'EUR';
       update audit_head h set (position, mac) = (
         select position, mac from audit a where a.workspace_id = h.workspace_id order by position desc limit 1)
       where exists (select from audit a where a.workspace_id = h.workspace_id)`,
    )
    // Signs the rows again, so that their MACs are as they were before the deposit.
    await signRows(cut.database.ownerUrl, cut.chainKey, 'wallet', "currency = 'EUR'")
    await signRows(cut.database.ownerUrl, cut.chainKey, 'ledger')
    const alone = await run(['ledger', 'verify'], through(cut))
    const against = await run(['ledger', 'verify', '--against', file], through(cut))
    await cut.stop()
    expect(checkpoint.exitCode).toBe(0)
    expect(alone).toMatchObject({ exitCode: 0, stderr: '' })
    expect(against).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('has 4 violations') })
    expect(against.stdout).toContain('the checkpoint names sequence 1, and it is at 0')
    expect(against.stdout).toMatch(/\nCompared with the checkpoint of .*\n$/)
  })
})

test('ledger halted, reopen and repair list, reopen and repair a halted workspace', async () => {
  const broken = await startSystem({ gateways: 0 })
  const environment = { CORE_URL: broken.coreUrl, CORE_TOKEN: broken.adminToken }
  const ran = (line: string) => run(words(line), environment)
  const reopen = `ledger reopen --workspace ${broken.workspaceId}`
  const before = [await ran('ledger halted'), await ran(reopen)] as const
  await execute(
    broken.database.ownerUrl,
    `set session_replication_role = replica; update wallet set balance = balance + 1 where name = 'Savings';
     update ledger set status = 'HALTED', halt_reason = 'somebody wrote past it'`,
  )
  const repair = `ledger repair --workspace ${broken.workspaceId}`
  const [listed, stays, shown, forced] = [
    await ran('ledger halted'),
    await ran(reopen),
    await ran(`${repair} --dry-run`),
    await ran(`${reopen} --force --json`),
  ] as const
  await execute(
    broken.database.ownerUrl,
    "update ledger set status = 'HALTED', halt_reason = 'once more', revision = revision + 1",
  )
  const repaired = await ran(repair)
  await broken.stop()

  expect(before[0].stdout).toBe('No workspace is halted.\n')
  expect(sentence(1, before[1])).toBe(`${broken.workspaceId} is not halted: it takes postings.`)
  expect(listed.stdout).toMatch(new RegExp(`\n${broken.workspaceId}  somebody wrote past it\n`))
  expect(stays).toMatchObject({
    exitCode: 1,
    stderr: `The ledger of ${broken.workspaceId} has 3 violations: run ledger repair first, or add --force.\n`,
  })
  expect(stays.stdout).toContain('its balance is 251.00, but its flows sum to 250.00')
  expect(stays.stdout).toMatch(/is still halted\.\n$/)
  expect(forced).toMatchObject({ exitCode: 0, stderr: '' })
  expect(JSON.parse(forced.stdout)).toMatchObject({ workspaceId: broken.workspaceId, reopened: true, ok: false })
  const change = /ROW +FIELD +STORED +REBUILT\nwal_\w+ +balance +251.00 +250.00\n/
  expect(shown).toMatchObject({ exitCode: 0, stderr: '' })
  expect(shown.stdout).toMatch(change)
  expect(shown.stdout).toMatch(/is still halted\.\n$/)
  expect(repaired).toMatchObject({ exitCode: 0, stderr: '' })
  expect(repaired.stdout).toMatch(change)
  expect(repaired.stdout).toMatch(/Changed 2 rows\.\nWorkspace wsp_\w+ is open again\.\n$/)
})

test('receipt check refuses what is no receipt; test/receipts.test.ts checks receipts', async () => {
  const file = join(dataDir, 'receipt.txt')
  await writeFile(file, 'paid in full')
  const { exitCode, stdout, stderr } = await run(words(`receipt check --file ${file}`))
  expect({ exitCode, stderr }).toEqual({
    exitCode: 1,
    stderr: 'The receipt is not confirmed: do not accept it.\n',
  })
  expect(stdout).toMatch(/^This is not a receipt: /)
  const tooLong = join(dataDir, 'long.txt')
  await writeFile(tooLong, 'x'.repeat(10_000))
  for (const [path, why] of [[tooLong, 'too long'] as const, [`${file}.absent`, 'ENOENT'] as const])
    expect(await fails(1, `receipt check --file ${path}`)).toBe(
      `Cannot read a receipt from ${path} (${why}): give the path of a file with one receipt.`,
    )
})

test('statement export writes a file; cli/statement-export.test.ts has its content', async () => {
  const workspaceId = await newWorkspace()
  const walletId = await newWallet(workspaceId)
  const file = join(dataDir, `export-${randomUUID()}.csv`)
  const command = `statement export --workspace ${workspaceId} --wallet ${walletId} --from 2h --to 1m --out ${file}`
  expect(await json(command)).toMatchObject({ file, flowCount: 0, opening: '0.00', closing: '0.00' })
  expect((await readFile(file, 'utf8')).split('\r\n')).toHaveLength(6)
})

describe('an invalid command line exits with 2 and one sentence', () => {
  const anyWallet = 'wal_01k9x5zq3sf4x9vtgkz3b8cdef'
  test.each([
    ['walet create', "Unknown command 'walet': did you mean wallet?"],
    [
      'banana',
      "Unknown command 'banana': the commands are workspace, member, key, wallet, statement, transfer, funding, receipt, hold, limit, ledger, event, webhook, search, audit, refusal, operator, session, system, kek and completion.",
    ],
    ['wallet crate', "Unknown command 'crate': did you mean create?"],
    [
      'wallet --json',
      "Unknown option '--json': options follow a command (create, deposit, withdraw, freeze, unfreeze, close and search).",
    ],
    [
      '--json',
      "Unknown option '--json': options follow a command (workspace, member, key, wallet, statement, transfer, funding, receipt, hold, limit, ledger, event, webhook, search, audit, refusal, operator, session, system, kek and completion).",
    ],
    ['workspace delete --workspce wsp_1', "Unknown option '--workspce': did you mean --workspace?"],
    ['key list -v', "Unknown option '-v': the options are --workspace, --key, --json and --help."],
    [
      'wallet create --grace 24h',
      "Unknown option '--grace': the options are --workspace, --currency, --name, --biz-id, --json and --help.",
    ],
    ['workspace create', 'workspace create needs --name NAME (display name of the workspace).'],
    [
      'wallet create --name Main',
      'wallet create needs --workspace wsp_… (ID of the workspace) and --currency CODE (currency code, such as USD).',
    ],
    ['workspace create --name', '--name needs a value: display name of the workspace.'],
    ['workspace create --name --json', '--name needs a value: display name of the workspace.'],
    [
      'workspace create --name Acme Ltd',
      "Too many arguments for 'create'. Expected 0 arguments but got 1: Ltd. Remove the extra words, or quote a value that contains spaces.",
    ],
    ['workspace create --name Acme --name Corp', '--name is given twice: give it once.'],
    ['workspace create --name Acme --json --json', '--json is given twice: give it once.'],
    ['workspace create --name Acme --json=yes', "Unknown option '--json=yes': --json takes no value."],
    ['workspace delete', 'workspace delete needs --workspace wsp_… (ID of the workspace).'],
    [
      `workspace delete --workspace ${anyWallet}`,
      `--workspace must be an ID, which is wsp_ and 26 letters and digits, not "${anyWallet}".`,
    ],
  ])('%s', async (line, expected) => {
    expect(sentence(2, await run(line.split(' ')))).toBe(expected)
  })

  test('a blank name', async () => {
    expect(await fails(2, 'workspace create --name', ' ')).toContain('at least one of them visible')
  })
})

describe('the audit log', () => {
  test('audit list prints who did what and what changed, by any filter, in pages', async () => {
    const workspaceId = await newWorkspace()
    const apiKey = await newKey(workspaceId)
    await core.apiKeys.disable.mutate({ apiKey })
    const listed = await json(`audit list --workspace ${workspaceId}`)
    expect(listed).toEqual({
      entries: ['key.disable', 'key.create', 'member.add', 'workspace.create'].map(action =>
        expect.objectContaining({ action, actor: 'admin:a', workspaceId, at: isoTime, id: expect.any(Number) }),
      ),
      next: null,
    })
    const [headings, row, ...others] = (await text(`audit list --target ${apiKey} --action key.disable`)).split('\n')
    expect(headings).toMatch(/^NUMBER +TIME +ACTOR +ACTION +TARGET +WORKSPACE +REASON +REQUEST +CHANGE$/)
    expect(row).toMatch(
      new RegExp(
        `^\\d+ +\\S+Z +admin:a +key.disable +${apiKey} +${workspaceId} +req_\\S+ +status "ACTIVE" → "DISABLED"$`,
      ),
    )
    expect(others).toEqual([''])
    const page = await text(`audit list --workspace ${workspaceId} --limit 3`)
    const [, before] = /There are older actions\. To list them, add --before (\d+)\.\n$/.exec(page) ?? []
    const rest = (await json(`audit list --workspace ${workspaceId} --before ${before}`)) as { entries: unknown[] }
    expect(rest.entries).toEqual([expect.objectContaining({ action: 'workspace.create' })])
    expect(await text('audit list --actor admin:nobody')).toBe('No actions found.\n')
    expect(await text(`audit list --workspace ${workspaceId} --to 1h`)).toBe('No actions found.\n')
    expect(await text(`audit list --workspace ${workspaceId} --from 1h`)).toContain('key.disable')
    const known = 'valid ones are kek.rotate, key.create, key.delete'
    const mistyped = await fails(2, 'audit list --action key.disabled')
    expect(mistyped).toContain(
      `--action contains "key.disabled", which is not a valid action: did you mean key.disable? The ${known}`,
    )
    expect(await fails(2, 'audit list --action x')).toContain(`which is not a valid action: the ${known}`)
    expect(await fails(2, 'audit list --limit 0')).toContain('from 1 to 10000')
    expect(await fails(2, 'audit list --before x')).toContain('NUMBER')
    expect(await fails(2, 'audit list --from yesterday')).toContain('2027-01-31')
  })
})

describe('key-encryption keys', () => {
  test('kek status and kek rotate print how many secrets each key encrypts', async () => {
    const workspaceId = await newWorkspace()
    const apiKey = await newKey(workspaceId)
    const status = await json('kek status')
    expect(status).toEqual({
      active: 'k1',
      keks: [{ kek: 'k1', secrets: expect.any(Number), onRing: true }],
      modified: { count: 0, rows: [] },
    })
    expect(await text('kek status')).toMatch(
      /^New secrets are encrypted under k1\.\n\nKEY-ENCRYPTION KEY +SECRETS +CORE HAS IT\nk1 +\d+ +yes\n$/,
    )
    expect(await json('kek rotate')).toEqual({ ...status, rewrapped: 0, remaining: 0, unreadable: [] })
    expect(await text('kek rotate')).toMatch(
      /^Re-encrypted 0 secrets\.\n\n[\s\S]*\n\nAll secrets are encrypted under k1\. /,
    )
    await modify('api_key', uuidFromId('apiKey', apiKey)!)
    const named = `\n\n1 row modified outside the service: ${apiKey} (${workspaceId}). Their secrets do not count. Delete them.\n`
    expect(await text('kek status')).toContain(named)
    expect(await text('kek rotate')).toContain(named)
    await core.apiKeys.delete.mutate({ apiKey })
  })
})

describe('finding', () => {
  test('workspace list and show, and member list', async () => {
    const workspaceId = await newWorkspace()
    const walletId = await newWallet(workspaceId)
    await core.wallets.deposit.mutate({ workspaceId, walletId, amount: '5', bizId: randomUUID() })
    const listed = await json('workspace list --limit 1')
    expect(listed.workspaces).toMatchObject([{ workspaceId, ledger: 'OPEN', wallets: 1, isModified: false }])
    expect(await text('workspace list --limit 1')).toContain(`add --after ${workspaceId}.`)
    expect(await json(`workspace show --workspace ${workspaceId}`)).toMatchObject({
      members: 1,
      funds: [{ currency: 'USD', balance: '5.00' }],
    })
    expect(await text(`workspace show --workspace ${workspaceId}`)).toMatch(
      /^Test \(wsp_\w+\), [\s\S]*\nFunds {6}5.00 USD\n$/,
    )
    expect(await json(`member list --workspace ${workspaceId}`)).toMatchObject({
      members: [{ userId: 'ada' }],
      next: null,
    })
    await core.members.remove.mutate({ workspaceId, userId: 'ada' })
    expect(await text(`member list --workspace ${workspaceId}`)).toBe('No members found.\n')
    expect(await text(`member list --workspace ${workspaceId} --removed`)).toContain('ada   REMOVED')
  })

  test('wallet search, transfer search and trace, funding list and show, and search find', async () => {
    const workspaceId = await newWorkspace()
    const walletId = await newWallet(workspaceId)
    const given = { workspaceId, walletId, amount: '5', bizId: `in-${randomUUID()}` }
    const { transferId, bizId } = await core.wallets.deposit.mutate(given)
    expect(await json(`wallet search --workspace ${workspaceId} --balance-from 5 --status ACTIVE`)).toMatchObject({
      wallets: [{ walletId, balance: '5.00', held: '0.00' }],
      next: null,
    })
    expect(await text(`wallet search --wallet ${walletId}`)).toContain(
      `${walletId}  ${workspaceId}  ACTIVE  5.00     USD`,
    )
    expect(await json(`transfer search --biz-id ${bizId}`)).toMatchObject({
      transfers: [{ transferId, type: 'DEPOSIT', amount: '5.00', sourceWalletId: null, targetWalletId: walletId }],
    })
    expect(await text(`transfer search --wallet ${walletId} --amount-to 5`)).toMatch(
      /DEPOSIT +5.00 +USD +outside +wal_/,
    )
    expect(await text('transfer search --biz-id none')).toBe('No transfers found.\n')
    expect(await json(`transfer trace --transfer ${transferId}`)).toMatchObject({
      transfer: { bizId, actor: 'admin:a' },
      target: { walletId, isGenuine: true, balanceAfter: '5.00' },
      receipt: null,
    })
    expect(await text(`transfer trace --transfer ${bizId} --workspace ${workspaceId}`)).toMatch(
      /^DEPOSIT trf_\w+ of 5.00 USD, [\s\S]*Made by {5}admin:a, request "[^"]+"\nFrom {8}outside, flow 1, [\s\S]*: genuine\n$/,
    )
    expect(await fails(1, `transfer trace --transfer ${bizId}`)).toContain('give --workspace, or a transferId')
    expect(await json(`funding list --workspace ${workspaceId}`)).toMatchObject({ transfers: [{ transferId }] })
    expect(await json(`funding show --funding ${transferId}`)).toMatchObject({ bizId, amount: '5.00' })
    expect(await text(`search find --text ${walletId}`)).toMatch(/^KIND +BY +ID +WORKSPACE +SUMMARY\nwallet +id +wal_/)
    expect((await json(`search find --text ${bizId}`)).found).toMatchObject([{ kind: 'transfer', by: 'bizId' }])
    expect(await text('search find --text nothing-has-this-name')).toBe('Nothing found.\n')
  })
})

describe('reasons', () => {
  test('are given with --reason, and listed in the audit log with the request', async () => {
    const workspaceId = await newWorkspace()
    const walletId = await newWallet(workspaceId)
    const flags = `--workspace ${workspaceId} --wallet ${walletId}`
    await json(`wallet deposit ${flags} --amount 5 --reason`, 'paid by wire')
    await json(`wallet freeze ${flags} --reason`, 'case 4711')
    expect(await text(`audit list --target ${walletId}`)).toMatch(
      /wallet.freeze [^\n]+ case 4711 +req_[\s\S]+ paid by wire +req_/,
    )
    const { entries } = (await json(`audit list --target ${walletId} --action wallet.freeze`)) as {
      entries: { requestId: string }[]
    }
    const { requestId } = entries[0]!
    expect(await json(`audit list --request ${requestId}`)).toEqual({ entries, next: null })
    expect(await text(`search find --text ${requestId}`)).toContain('wallet.freeze by admin:a')
    expect(await fails(2, `wallet freeze ${flags} --reason`, ' ')).toContain('must have 1 to 256 characters')
  })
})

describe('the state of the service', () => {
  test('ledger verifications and checkpoints list what has ended', async () => {
    await json('ledger verify')
    const { verifications } = await json('ledger verifications --limit 1')
    expect(verifications).toMatchObject([{ ok: true, actor: 'admin:a', isGenuine: true, brokenRules: [] }])
    expect(await text('ledger verifications --limit 1')).toMatch(/^NUMBER +TIME +RESULT[\s\S]+ sound +all /)
    await json(`ledger checkpoint --out ${join(dataDir, 'listed.checkpoint')}`)
    expect(await text('ledger checkpoints --limit 1')).toMatch(/^NUMBER +TIME +CHECKPOINT[\s\S]+ all +\d+ +admin:a/)
    expect((await json('ledger checkpoints --limit 1')).checkpoints).toMatchObject([{ isGenuine: true }])
  })

  test('system status shows the last of each, and keys that expire soon', async () => {
    const workspaceId = await newWorkspace()
    const expiresAt = new Date(Date.now() + 86_400_000)
    const key = { workspaceId, ownerUserId: 'ada', scopes: ['wallet:read' as const], expiresAt }
    const { apiKey } = await core.apiKeys.create.mutate(key)
    expect((await json('system status')).lastVerification).toMatchObject({ ok: true })
    const shown = await text('system status')
    expect(shown).toMatch(/^Core \d\S+ \(0001-initial\), Node v24\S+, PostgreSQL 18\S+\nLast verification {2}sound, /)
    expect(shown).toContain('No workspace is halted.')
    expect(shown).toMatch(new RegExp(`Expire within 30 days:\n[^\n]+\n(.+\n)*${apiKey} +ada`))
  })

  test('refusal list shows refused calls', async () => {
    expect(await text('refusal list --code GA2012')).toBe('No refused calls found.\n')
    const gateway = await system.startGateway()
    const response = await fetch(`${gateway.url}/api/v1/wallets`)
    const requestId = response.headers.get('x-request-id')!
    await gateway.stop()
    expect(await text(`refusal list --request ${requestId}`)).toMatch(
      /GA2001 +key +GET \/api\/v1\/wallets +127\.0\.0\.1 +req_/,
    )
    expect((await json(`refusal list --request ${requestId}`)).refusals).toMatchObject([
      { code: 'GA2001', gateway: 'g' },
    ])
  })
})

describe('operators', () => {
  const token = expect.stringMatching(/^opr_[\w-]{55}$/)

  test('operator create prints a token once, with which commands run under the name of the operator', async () => {
    const issued = await json('operator create --name ada --role admin --expires 90d')
    expect(issued).toEqual({ name: 'ada', token, expiresAt: isoTime, role: 'admin' })
    const asAda = (...args: string[]) => run(args, { CORE_URL: coreUrl, CORE_TOKEN: String(issued.token) })
    expect((await asAda('session', 'whoami')).stdout).toBe(
      `operator:ada, with the role admin. The token expires at ${issued.expiresAt}.\n`,
    )
    const { stdout } = await asAda('workspace', 'create', '--name', 'Hers', '--json')
    const { workspaceId } = JSON.parse(stdout)
    expect(await text(`audit list --actor operator:ada`)).toContain(`workspace.create  ${workspaceId}`)
    expect(await json('session whoami')).toEqual({ actor: 'admin:a', name: 'a', role: 'admin', expiresAt: null })
  })

  test('operator rotate, list and disable', async () => {
    expect(await text('operator create --name bob@example.com --role viewer')).toMatch(
      /^Operator {2}bob@example.com\nToken {5}opr_\S+\n\nStore the token now. It is not shown again.\n$/,
    )
    expect(await json('operator rotate --name bob@example.com')).toEqual({
      name: 'bob@example.com',
      token,
      expiresAt: null,
    })
    expect(await text('operator rotate --name bob@example.com --expires 2099-01-01')).toContain(
      'It expires at 2099-01-01T',
    )
    expect(await text('operator list')).toMatch(
      /^NAME +ROLE +STATUS +EXPIRES +CREATED +CHANGED\n[\s\S]*bob@example.com +viewer +ACTIVE +2099-01-01T/,
    )
    expect(await json('operator disable --name bob@example.com')).toEqual({ name: 'bob@example.com', disabled: true })
    expect((await json('operator list')).operators).toContainEqual(
      expect.objectContaining({ name: 'bob@example.com', status: 'DISABLED', isModified: false }),
    )
    expect(await fails(1, 'operator disable --name nobody')).toBe('There is no operator nobody.')
    expect(await fails(2, 'operator create --name Bob --role admin')).toContain('must be 1 to 64 lower-case letters')
    expect(await fails(2, 'operator create --name bob --role root')).toContain('not a valid role')
  })

  test('a viewer who changes something is told which role it takes', async () => {
    const { token } = await core.operators.create.mutate({ name: 'eve', role: 'viewer' })
    const asEve = (args: string[]) => run(args, { CORE_URL: coreUrl, CORE_TOKEN: token })
    expect((await asEve(['ledger', 'verify', '--json'])).exitCode).toBe(0)
    expect(sentence(1, await asEve(['workspace', 'create', '--name', 'Hers']))).toBe(
      'The token of CORE_TOKEN does not have a role that may do this: use one of the role admin.',
    )
    await core.operators.disable.mutate({ name: 'eve' })
    expect(sentence(1, await asEve(['key', 'list']))).toContain('rejects the token of CORE_TOKEN')
  })
})

describe('a core that cannot be called', () => {
  const command = ['key', 'list']

  test('none was started here', async () => {
    expect(sentence(1, await run(command, {}))).toBe(
      `There is no ${join(dataDir, 'core.json')}: start the service with npm start, or set CORE_URL and CORE_TOKEN.`,
    )
  })

  test('nothing listens', async () => {
    // The system gives this port to no program.
    const url = 'http://127.0.0.1:2'
    const expected = `No core answers at ${url}: start the service with npm start, or correct CORE_URL.`
    expect(sentence(1, await run(command, { CORE_URL: url, CORE_TOKEN: adminToken }))).toBe(expected)
    expect(sentence(1, await run(['ledger', 'verify'], { CORE_URL: url, CORE_TOKEN: adminToken }))).toBe(expected)
  })

  test('the token is wrong, or has another role', async () => {
    const wrong = { CORE_URL: coreUrl, CORE_TOKEN: 'x'.repeat(43) }
    const unknown = `The core at ${coreUrl} rejects the token of CORE_TOKEN, which is unknown, expired or disabled: use a service token of the role admin, or that of an operator.`
    expect(sentence(1, await run(command, wrong))).toBe(unknown)
    expect(sentence(1, await run(['ledger', 'verify'], wrong))).toBe(unknown)
    const lesser = { CORE_URL: coreUrl, CORE_TOKEN: system.serviceToken }
    expect(sentence(1, await run(command, lesser))).toContain('does not have a role that may do this')
  })

  test('the URL is the public one of a gateway', async () => {
    const { url } = await system.startGateway()
    const gateway = { CORE_URL: url, CORE_TOKEN: adminToken }
    const expected = `The server at ${url} (HTTP 404) is not a core of this version: set CORE_URL to the URL of core, not to the public URL of a gateway.`
    expect(sentence(1, await run(command, gateway))).toBe(expected)
    expect(sentence(1, await run(['ledger', 'verify'], gateway))).toBe(expected)
  })

  test('only the URL or only the token is set', async () => {
    expect(sentence(1, await run(command, { CORE_URL: coreUrl }))).toContain('CORE_TOKEN is not')
    expect(sentence(1, await run(command, { CORE_TOKEN: adminToken }))).toContain('CORE_URL is not')
    expect(sentence(1, await run(command, { CORE_URL: 'localhost:8081', CORE_TOKEN: adminToken }))).toContain(
      'must be a URL',
    )
  })

  test('its database is unavailable', async () => {
    const path = await startFaultProxy(Number(new URL(system.database.serviceUrl).port))
    const DATABASE_URL = Object.assign(new URL(system.database.serviceUrl), { port: path.port }).href
    const other = await system.startCore({ DATABASE_URL })
    const environment = { CORE_URL: other.url, CORE_TOKEN: adminToken }
    const create = ['workspace', 'create', '--name', 'Acme']
    expect((await run(create, environment)).exitCode).toBe(0)
    path.cut()
    expect(sentence(1, await run(create, environment))).toMatch(/^Nothing was done, .* retry in \d+ s\. /)
  })
})

test('the core of npm start is found in DATA_DIR, and the environment overrides it', async () => {
  const embedded = join(dataDir, 'embedded')
  await mkdir(embedded)
  const file = join(embedded, 'core.json')
  const command = ['workspace', 'create', '--name', 'Acme', '--json']

  await writeFile(file, JSON.stringify({ coreUrl, adminToken }))
  expect((await run(command, { DATA_DIR: embedded })).exitCode).toBe(0)

  await writeFile(file, JSON.stringify({ coreUrl: 'http://127.0.0.1:1', adminToken: 'of another core' }))
  expect((await run(command, { DATA_DIR: embedded, ...throughCore })).exitCode).toBe(0)

  await writeFile(file, JSON.stringify({ coreUrl, adminToken: 'x'.repeat(43) }))
  expect(sentence(1, await run(command, { DATA_DIR: embedded }))).toContain(`the token of ${file}`)

  await writeFile(file, '{\n')
  expect(sentence(1, await run(command, { DATA_DIR: embedded }))).toContain('is damaged')

  await writeFile(file, '{}')
  expect(sentence(1, await run(command, { DATA_DIR: embedded }))).toContain('lacks coreUrl or adminToken')
})

describe('help', () => {
  test('of the program: every command, with examples', async () => {
    const shown = await Promise.all([run([]), run(['--help']), run(['-h']), run(['help'])])
    for (const { exitCode, stdout, stderr } of shown) {
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
      expect(stdout).toBe(shown[0]?.stdout)
    }
    const unwrapped = shown[0]?.stdout.replaceAll(/\s+/g, ' ')
    for (const { noun, verb, help } of commands) expect(unwrapped).toContain(` ${noun} ${verb} ${help} `)
    expect(shown[0]?.stdout).toContain('Examples:\n  npm run admin -- workspace create --name Acme\n')
  })

  test('of a noun: its verbs', async () => {
    const [bare, asked] = await Promise.all([run(['wallet']), run(['wallet', '--help'])])
    expect(bare).toEqual(asked)
    expect(asked).toMatchObject({ exitCode: 0, stderr: '' })
    expect(asked.stdout).toContain('wallet freeze')
    expect(asked.stdout).not.toContain('key rotate')
  })

  test('of a command: its flags and examples, without calling core', async () => {
    const [shown, asked] = await Promise.all([
      run(['key', 'create', '--owner', '--help'], {}),
      run(['help', 'key', 'create'], {}),
    ])
    expect(asked).toEqual(shown)
    const { exitCode, stdout } = shown
    expect(exitCode).toBe(0)
    for (const { noun, verb, flags } of commands.filter(each => each.noun === 'key' && each.verb === 'create'))
      for (const flag of [...Object.keys(flags), 'json', 'help'])
        expect(stdout, `${noun} ${verb}`).toMatch(new RegExp(`^  (-h, )?--${flag}\\b.*  \\S`, 'm'))
    expect(stdout).toContain('Examples:\n  npm run admin -- key create --workspace wsp_…')
    expect(stdout).toMatch(/^Required:\n {2}--workspace [\s\S]*\nOptions:\n {2}--ips /m)
    expect((await run(['audit', 'list', '--help'], {})).stdout).toMatch(/--limit <COUNT> .*\(default: 50\)/)
  })
})

describe('shell completion', () => {
  /** The candidates for the last word. */
  async function completed(...line: string[]): Promise<string[]> {
    const { exitCode, stdout, stderr } = await run(['complete', '--', ...line], {})
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    return stdout.split('\n').flatMap(row => (row ? [row.split('\t')[0]!] : []))
  }

  test('completes nouns, verbs, flags and the values of lists', async () => {
    expect(await completed('')).toEqual([...new Set(commands.map(({ noun }) => noun)), 'completion'])
    expect(await completed('wal')).toEqual(['wallet'])
    expect(await completed('wallet', '')).toEqual(
      commands.filter(({ noun }) => noun === 'wallet').map(({ verb }) => verb),
    )
    expect(await completed('wallet', 'create', '--')).toEqual([
      '--workspace',
      '--currency',
      '--name',
      '--biz-id',
      '--json',
      '--help',
    ])
    expect(await completed('hold', 'list', '--workspace', 'wsp_', '--status', 'R')).toEqual(['RELEASED'])
    expect(await completed('event', 'tail', '--f')).toEqual(['--follow'])
    expect(await completed('wallet', 'create', '--currency', 'USD')).toEqual(['USD', 'USDC', 'USDT'])
    expect(await completed('key', 'create', '--scopes', 'transfer:r')).toEqual(['transfer:read', 'transfer:reverse'])
    expect(await completed('key', 'create', '--scopes', 'transfer:read,')).toEqual(
      scopes.filter(scope => scope !== 'transfer:read').map(scope => `transfer:read,${scope}`),
    )
    expect(await completed('key', 'create', '--scopes=transfer:c')).toEqual(['--scopes=transfer:create'])
    expect(await completed('key', 'set-expiry', '--expires', '')).toEqual(['now', 'never'])
    expect(await completed('key', 'create', '--name', '')).toEqual([])
    expect(await completed('completion', '')).toEqual(['bash', 'zsh', 'fish'])
  })

  test('bash loads the script and completes words with colons', async () => {
    const { exitCode, stdout: loaded, stderr } = await run(['completion', 'bash'], {})
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    const type = (line: string) =>
      `COMP_LINE='${line}' COMP_POINT=${line.length}; _wallet_admin; echo "\${COMPREPLY[*]}"`
    const lines = ['wallet-admin wal', 'wallet-admin key create --scopes wallet:r', 'wallet-admin key list --name ']
    const bash = spawnSync('bash', {
      input: [loaded, ...lines.map(type), 'complete -p wallet-admin'].join('\n'),
      env: { ...process.env, PATH: `${join(root, 'cli')}:${process.env.PATH}` },
      encoding: 'utf8',
    })
    expect(bash).toMatchObject({ status: 0, stderr: '' })
    // bash itself adds "wallet:" before "read".
    expect(bash.stdout).toBe('wallet\nread\n\ncomplete -o default -F _wallet_admin wallet-admin\n')
  })

  test('has scripts for zsh and fish, and for no other shell', async () => {
    for (const shell of ['zsh', 'fish'])
      expect((await run(['completion', shell], {})).stdout).toContain('wallet-admin complete -- ')
    expect(sentence(2, await run(['completion', 'ksh'], {}))).toContain('Allowed choices are bash, zsh, fish.')
  })
})

test('wallet-admin finds the service of the checkout that it is linked from, in any directory, unless DATA_DIR is set', async () => {
  const checkout = await makeTempDir('checkout')
  const elsewhere = await makeTempDir('elsewhere')
  await mkdir(join(checkout, 'cli'))
  await copyFile(join(root, 'cli/wallet-admin'), join(checkout, 'cli/wallet-admin'))
  for (const name of ['admin.ts', 'node-version.cjs'])
    await symlink(join(root, 'cli', name), join(checkout, 'cli', name))
  // As npm link does.
  await symlink(join(checkout, 'cli/wallet-admin'), join(elsewhere, 'wallet-admin'))
  const walletAdmin = (environment: NodeJS.ProcessEnv) => {
    const { promise, resolve } = Promise.withResolvers<Ran>()
    const env = { PATH: `${join(process.execPath, '..')}:${PATH}`, NODE_COMPILE_CACHE, ...environment }
    const args = ['workspace', 'create', '--name', 'Linked', '--json']
    execFile(join(elsewhere, 'wallet-admin'), args, { cwd: elsewhere, env }, (error, stdout, stderr) =>
      resolve({ exitCode: error ? Number(error.code) : 0, stdout, stderr }),
    )
    return promise
  }
  expect(sentence(1, await walletAdmin({}))).toBe(
    `There is no ${join(checkout, '.data/core.json')}: start the service with npm start, or set CORE_URL and CORE_TOKEN.`,
  )
  for (const directory of [checkout, elsewhere]) {
    await mkdir(join(directory, '.data'))
    const connection = directory === checkout ? { coreUrl, adminToken } : { coreUrl: 'http://127.0.0.1:9' }
    await writeFile(join(directory, '.data/core.json'), JSON.stringify(connection))
  }
  const { exitCode, stdout, stderr } = await walletAdmin({})
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  expect(JSON.parse(stdout)).toEqual({ workspaceId: id('wsp') })
  expect(sentence(1, await walletAdmin({ DATA_DIR: '.data' }))).toContain('.data/core.json lacks coreUrl or adminToken')
})

test('npm run --silent prints the JSON only and passes the exit code on', async () => {
  const npm = (...args: string[]) => {
    const { promise, resolve } = Promise.withResolvers<Ran>()
    const env = { ...process.env, ...throughCore }
    execFile('npm', ['run', '--silent', 'admin', '--', ...args], { cwd: root, env }, (error, stdout, stderr) =>
      resolve({ exitCode: error ? Number(error.code) : 0, stdout, stderr }),
    )
    return promise
  }
  const made = await npm('workspace', 'create', '--name', 'A name with spaces', '--json')
  expect(JSON.parse(made.stdout)).toEqual({ workspaceId: id('wsp') })
  expect((await npm('workspace', 'create')).exitCode).toBe(2)
})

test('these tests have run every command', () => {
  expect([...used].filter(name => commands.some(({ noun, verb }) => name === `${noun} ${verb}`)).toSorted()).toEqual(
    commands.map(({ noun, verb }) => `${noun} ${verb}`).toSorted(),
  )
})
