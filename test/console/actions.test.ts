import { randomUUID } from 'node:crypto'
import { mintId, uuidFromId } from '@workspace-wallet/contract'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { call } from '../setup/client.ts'
import { act, type ConsoleTest, dialog, givenReason, startConsole } from '../setup/console.ts'
import { execute } from '../setup/database.ts'
import { until } from '../setup/until.ts'
import { createWallet, createWorkspace } from '../setup/workspaces.ts'

/** What an operator does on the pages, checked in core. */

let console: ConsoleTest
beforeAll(async () => {
  console = await startConsole()
})
afterAll(() => console.stop())
afterEach(() => console.closePages())

const caller = { requestId: 'test' }
const balanceOf = async (workspaceId: string, walletId: string) =>
  (await console.system.admin.wallets.balance.query({ workspaceId, walletId, caller })).balance.toFixed(2)

test('an operator sets up a workspace: a member, a wallet, money, and a key with which a client makes the first call', async () => {
  const { admin } = console.system
  const page = await console.signIn('/workspaces')
  const name = `Shop ${randomUUID()}`
  await act(page, 'Create a workspace', { Name: name })
  await page.getByRole('heading', { name, level: 1 }).waitFor()
  const workspaceId = new URL(page.url()).pathname.split('/').at(-1)!
  await act(page, 'Add a member', { 'User ID': 'ada@shop.example' })
  await page.getByRole('cell', { name: 'ada@shop.example' }).waitFor()

  await page.getByRole('link', { name: 'Wallets', exact: true }).first().click()
  await act(page, 'Create a wallet', { Name: 'Till', Currency: 'EUR' })
  await page.getByRole('heading', { name: 'Till', level: 1 }).waitFor()
  const walletId = new URL(page.url()).pathname.split('/').at(-1)!
  await act(page, 'Deposit', { Amount: '0.10' })
  await dialog(page).waitFor({ state: 'detached' })
  await page.getByRole('cell', { name: 'Deposit' }).waitFor()
  // The double click made one deposit.
  expect(await balanceOf(workspaceId, walletId)).toBe('0.10')

  await page.getByRole('link', { name: 'Keys', exact: true }).first().click()
  await act(page, 'Issue a key', { Name: 'Till', Owner: 'ada@shop.example' })
  await dialog(page).getByText('it is shown only once').waitFor()
  const [apiKey, apiSecret] = await dialog(page).locator('code').allTextContents()
  const credentials = { baseUrl: console.system.baseUrl, apiKey: apiKey!, apiSecret: apiSecret! }
  const answer = await call(credentials, 'GET', '/api/v1/wallets')
  expect(answer.body.data.content).toEqual([expect.objectContaining({ walletId })])
  const { keys } = await admin.apiKeys.list.query({ workspaceId })
  expect(keys).toHaveLength(1)
  await dialog(page).locator('button', { hasText: 'Close' }).click()
  expect(await page.content()).not.toContain(apiSecret)
})

test('a wallet: withdraw, freeze, unfreeze, limit, statement, chain, close', async () => {
  const { admin, workspaceId } = console.system
  const walletId = await createWallet({ admin, workspaceId }, { name: 'Busy', deposits: ['100.00'] })
  const page = await console.signIn(`/wallets/${walletId}?workspace=${workspaceId}`)
  const status = async () => (await admin.wallets.get.query({ workspaceId, walletId, caller })).status
  await act(page, 'Withdraw', { Amount: '1000' })
  await dialog(page)
    .getByText(/balance/i)
    .first()
    .waitFor()
  await dialog(page).getByText('T002').waitFor()
  await dialog(page).getByRole('button', { name: 'Cancel' }).click()
  await act(page, 'Withdraw', { Amount: '40.5' })
  await dialog(page).waitFor({ state: 'detached' })
  expect(await balanceOf(workspaceId, walletId)).toBe('59.50')

  await act(page, 'Freeze')
  await page.getByRole('button', { name: 'Unfreeze' }).waitFor()
  expect(await status()).toBe('FROZEN')
  const { entries } = await admin.audit.list.query({ workspaceId, action: 'wallet.freeze' })
  expect(entries[0]).toMatchObject({
    target: walletId,
    reason: 'a test',
    requestId: expect.stringMatching(/^console-/),
  })
  await act(page, 'Unfreeze')
  await page.getByRole('button', { name: 'Freeze', exact: true }).waitFor()
  expect(await status()).toBe('ACTIVE')

  await act(page, 'Set a limit', { 'Per day (UTC)': '25' })
  await page.getByRole('cell', { name: /25.00/ }).waitFor()
  await page.getByRole('button', { name: 'Verify the chain' }).click()
  await page.getByText('The chain of this wallet is intact.').waitFor()

  await act(page, 'Withdraw', { Amount: '59.50' })
  await dialog(page).getByText('T008').waitFor()
  await dialog(page).getByRole('button', { name: 'Cancel' }).click()
  await act(page, 'Remove')
  await page.getByText('There are no limits').waitFor()
  await act(page, 'Withdraw', { Amount: '59.50' })
  await dialog(page).waitFor({ state: 'detached' })
  await act(page, 'Close')
  await page.getByText('Closed', { exact: true }).waitFor()
  expect(await status()).toBe('CLOSED')
})

test('a transfer is reversed in part, once, and found by its bizId in the search box', async () => {
  const { system } = console
  const { workspaceId } = system
  const [source, target] = system.wallets
  const order = { sourceWalletId: source!.walletId, targetWalletId: target!.walletId, amount: '9.00', currency: 'USD' }
  const bizId = `order-${randomUUID()}`
  await call(system, 'POST', '/api/v1/transfer/command/create', { ...order, bizId })
  const page = await console.signIn()
  await page.locator('body').press('/')
  await page.keyboard.type(bizId)
  await page.keyboard.press('Enter')
  await page
    .getByRole('row', { name: /Transfer/ })
    .getByRole('link')
    .first()
    .click()
  await page.getByText('Main', { exact: true }).waitFor()
  await act(page, 'Reverse', { Amount: '2.50' })
  await page.getByRole('heading', { name: 'Reversals' }).waitFor()
  const { reversedAmount } = await system.admin.transfers.get.query({ workspaceId, bizId, caller })
  expect(reversedAmount.toFixed(2)).toBe('2.50')
})

test('a key: rotate, disable, enable, restrict, expire, delete', async () => {
  const { admin } = console.system
  const workspaceId = await createWorkspace({ admin })
  const { apiKey } = await admin.apiKeys.create.mutate({ workspaceId, ownerUserId: 'owner', scopes: ['wallet:read'] })
  const record = async () => (await admin.apiKeys.list.query({ apiKey })).keys[0]
  const page = await console.signIn(`/keys/${apiKey}?workspace=${workspaceId}`)
  await act(page, 'Rotate', { 'Grace period in hours': '2' })
  await dialog(page).getByText('it is shown only once').waitFor()
  await dialog(page).locator('button', { hasText: 'Close' }).click()
  expect((await record())!.oldSecretUntil!.getTime()).toBeGreaterThan(Date.now())
  await act(page, 'Disable')
  await page.getByRole('button', { name: 'Enable' }).waitFor()
  expect((await record())!.status).toBe('DISABLED')
  await act(page, 'Enable')
  await page.getByRole('button', { name: 'Disable' }).waitFor()

  await page.getByRole('button', { name: 'Set scopes' }).click()
  await dialog(page).getByLabel('transfer:read').check()
  await dialog(page).getByLabel('Reason').fill('a test')
  await dialog(page).getByRole('button', { name: 'Set scopes' }).click()
  await dialog(page).waitFor({ state: 'detached' })
  expect((await record())!.scopes).toEqual(['wallet:read', 'transfer:read'])

  await page.getByRole('button', { name: 'Set addresses' }).click()
  await dialog(page).getByLabel('IP addresses').fill('192.0.2.0/24')
  await page.keyboard.press('Enter')
  await dialog(page).getByLabel('Reason').fill('a test')
  await dialog(page).getByRole('button', { name: 'Set addresses' }).click()
  await dialog(page).waitFor({ state: 'detached' })
  expect((await record())!.ipAllowlist).toEqual(['192.0.2.0/24'])

  await act(page, 'Set expiry', { Expires: '2020-01-01T00:00' })
  await page.getByText('Expired', { exact: true }).waitFor()
  await act(page, 'Delete')
  await page.getByRole('heading', { name: 'Keys', level: 1 }).waitFor()
  expect(await record()).toBeUndefined()
})

test('an operator is created, signs in, and is signed out when they are disabled', async () => {
  const page = await console.signIn('/operators')
  const name = `viewer-${randomUUID().slice(0, 8)}`
  await act(page, 'Create an operator', { Name: name })
  await dialog(page).getByText('it is shown only once').waitFor()
  const token = (await dialog(page).locator('code').textContent())!
  await dialog(page).locator('button', { hasText: 'Close' }).click()
  const viewer = await console.signIn('/operators', { token })
  await viewer.getByRole('cell', { name, exact: true }).waitFor()
  await page.getByRole('row', { name }).getByRole('button', { name: 'Disable' }).click()
  await dialog(page).getByLabel('Reason').fill(givenReason)
  await dialog(page).getByRole('button', { name: 'Disable' }).click()
  await dialog(page).waitFor({ state: 'detached' })
  await viewer.getByRole('link', { name: 'Audit', exact: true }).click()
  await viewer.getByText('You were signed out').waitFor()
})

test('names that look like markup, run from right to left or consist of emoji are shown as text', async () => {
  const { admin, workspaceId } = console.system
  const hostile = [`<script>alert(1)</script><img src=x onerror=alert(1)>`, '\u202eمحفظة', '😀'.repeat(128)]
  for (const name of hostile) await createWallet({ admin, workspaceId }, { name })
  const page = await console.signIn(`/wallets?workspace=${workspaceId}`)
  for (const name of hostile) await page.getByText(name, { exact: true }).waitFor()
  expect(await page.locator('main script, main img').count()).toBe(0)
  expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0)
})

test('new events appear by themselves', async () => {
  const { admin } = console.system
  const workspaceId = await createWorkspace({ admin })
  const page = await console.signIn(`/events?workspace=${workspaceId}`)
  await page.getByText('There is no event yet').waitFor()
  await createWallet({ admin, workspaceId }, { deposits: ['5.00'] })
  await page.getByRole('cell', { name: 'wallet.deposited' }).waitFor()
  await page.getByRole('cell', { name: 'wallet.created' }).waitFor()
})

test('filters that are applied again read the list again', async () => {
  const apiKey = mintId('apiKey')
  const page = await console.signIn(`/refusals?apiKey=${apiKey}`)
  await page.getByText('No refused call matches.').waitFor()
  const call = { at: new Date(), method: 'GET', route: 'none', code: 'GA2011', step: 'key', detail: 'No such key.' }
  const refusal = { ...call, apiKey, address: '203.0.113.7', requestId: 'req_1', isSigned: false }
  await console.system.gatewayClient.refusals.report.mutate({ refusals: [refusal], dropped: 0 })
  await page.getByRole('button', { name: 'Apply' }).click()
  await page.getByText('No such key.').waitFor()
})

test('while core is lost, a page says so, and it goes on when core is back', async () => {
  const own = await startConsole()
  try {
    const { system } = own
    const page = await own.signIn(`/wallets?workspace=${system.workspaceId}`)
    await page.getByRole('cell', { name: 'Main', exact: true }).waitFor()
    const [core] = system.cores
    await core!.stop()
    await page.getByRole('button', { name: /^Balance/ }).click()
    await page.getByText('The service does not answer.').waitFor()
    await page.getByText(/Request ID: console-/).waitFor()
    await system.startCore({ CORE_PORT: new URL(core!.url).port })
    await until('the page works again', async () => {
      const retry = page.getByRole('button', { name: 'Retry' })
      if (await retry.isVisible()) await retry.click()
      return page.getByRole('cell', { name: 'Main', exact: true }).isVisible()
    })
    await own.closePages()
  } finally {
    await own.stop()
  }
})

test('a hold is released, with the reason in the audit', async () => {
  const { system } = console
  const { admin, workspaceId, wallets } = system
  const hold = {
    walletId: wallets[0]!.walletId,
    amount: '5.00',
    currency: 'USD',
    bizId: 'table-7',
    expiresInSeconds: 600,
  }
  const { body } = await call(system, 'POST', '/api/v1/hold/command/create', hold)
  const { holdId } = body.data
  const page = await console.signIn(`/holds?workspace=${workspaceId}&hold=${holdId}`)
  await page.getByRole('cell', { name: 'Open' }).first().waitFor()
  await act(page, 'Release')
  await page.getByRole('cell', { name: 'Released' }).first().waitFor()
  expect((await admin.holds.get.query({ workspaceId, bizId: holdId, caller })).status).toBe('RELEASED')
  const { entries } = await admin.audit.list.query({ workspaceId, action: 'hold.release' })
  expect(entries).toMatchObject([{ target: holdId, reason: givenReason }])
})

test('a webhook: pause, resume, seek, delete, each with its reason in the audit', async () => {
  const { system } = console
  const { admin, workspaceId } = system
  const { body } = await call(system, 'POST', '/api/v1/webhook/command/create', {
    url: 'https://shop.example/events',
    bizId: 'hook',
  })
  const { webhookId, position } = body.data
  const page = await console.signIn(`/webhooks?workspace=${workspaceId}`)
  const record = () => admin.webhooks.get.query({ workspaceId, webhookId, caller })
  await act(page, 'Pause')
  await page.getByRole('cell', { name: 'Paused' }).waitFor()
  expect((await record()).status).toBe('PAUSED')
  await act(page, 'Seek', { 'Continue after position': '1' })
  await page.getByRole('row', { name: webhookId }).getByRole('cell', { name: '1', exact: true }).waitFor()
  expect((await record()).position).toBe(1)
  expect(position).toBeGreaterThan(1)
  await act(page, 'Resume')
  await page.getByRole('cell', { name: 'Active' }).waitFor()
  await act(page, 'Delete')
  await page.getByText('No webhook matches.').waitFor()
  await expect(record()).rejects.toThrow()
  const { entries } = await admin.audit.list.query({ workspaceId, target: webhookId })
  expect(entries.map(({ action, reason }) => [action, reason])).toEqual([
    ['webhook.delete', givenReason],
    ['webhook.resume', givenReason],
    ['webhook.seek', givenReason],
    ['webhook.pause', givenReason],
    ['webhook.create', null],
  ])
})

test('a workspace with money is deleted only if the operator says so', async () => {
  const { admin } = console.system
  const workspaceId = await createWorkspace({ admin }, `Closing ${randomUUID()}`)
  await createWallet({ admin, workspaceId }, { deposits: ['1.00'] })
  const page = await console.signIn(`/workspaces/${workspaceId}`)
  await act(page, 'Delete')
  await dialog(page).getByRole('alert').getByText('money').waitFor()
  expect((await admin.workspaces.get.query({ workspaceId })).deletedAt).toBeNull()
  await dialog(page).getByLabel('Delete it even if its wallets hold money').check()
  await dialog(page).getByRole('button', { name: 'Delete' }).dblclick()
  await page.getByRole('heading', { name: 'Workspaces', level: 1 }).waitFor()
  expect((await admin.workspaces.get.query({ workspaceId })).deletedAt).not.toBeNull()
  const { entries } = await admin.audit.list.query({ workspaceId, action: 'workspace.delete' })
  expect(entries).toMatchObject([{ reason: givenReason }])
})

test("an operator's token is replaced: the old one is refused, and the new one signs in", async () => {
  const { admin } = console.system
  const name = `rotated-${randomUUID().slice(0, 8)}`
  const old = await admin.operators.create.mutate({ name, role: 'viewer' })
  const viewer = await console.signIn('/audit', { token: old.token })
  await viewer.getByRole('heading', { name: 'Audit' }).waitFor()
  const page = await console.signIn('/operators')
  await page.getByRole('row', { name }).getByRole('button', { name: 'Replace token' }).click()
  await dialog(page).getByLabel('Reason').fill(givenReason)
  await dialog(page).getByRole('button', { name: 'Replace token' }).click()
  await dialog(page).getByText('it is shown only once').waitFor()
  const token = (await dialog(page).locator('code').textContent())!
  await viewer.getByRole('link', { name: 'Overview', exact: true }).click()
  await viewer.getByText('You were signed out').waitFor()
  const again = await console.signIn('/audit', { token })
  await again.getByRole('cell', { name: 'operator.rotate' }).first().waitFor()
  const { entries } = await admin.audit.list.query({ target: name, action: 'operator.rotate' })
  expect(entries).toMatchObject([{ reason: givenReason }])
})

test('one of 100,000 wallets is found by its name, ID and bizId, and every page of the list is reached', async () => {
  const { admin, database } = console.system
  const workspaceId = await createWorkspace({ admin })
  const count = 100_000
  // Without MACs, which lists do not check.
  await execute(
    database.ownerUrl,
    `set session_replication_role = replica;
     insert into wallet (workspace_id, id, number, kind, biz_id, name, currency, status, created_at, updated_at, revision, mac)
       select '${uuidFromId('workspace', workspaceId)}', uuidv7(), n, 'CUSTOMER', 'customer-' || n, 'Customer ' || n, 'USD',
         'ACTIVE', now(), now(), 1, '' from generate_series(1, ${count}) n;
     update ledger set wallet_count = ${count} where workspace_id = '${uuidFromId('workspace', workspaceId)}'`,
  )
  const page = await console.signIn(`/wallets?workspace=${workspaceId}&sort=name,asc`)
  await page.getByText(`of ${count}`).waitFor()
  await page.getByRole('cell', { name: 'Customer 1', exact: true }).waitFor()
  const { wallets } = await admin.wallets.search.query({ namePrefix: 'Customer 77123', limit: 1 })
  const { walletId } = wallets[0]!
  await page.getByLabel('ID begins with').fill(walletId)
  await page.getByRole('button', { name: 'Apply' }).click()
  await page.getByRole('cell', { name: 'Customer 77123' }).waitFor()
  for (const text of [walletId, 'customer-77123']) {
    const found = page.getByRole('row', { name: /Wallet/ }).getByText('Customer 77123')
    // A search ends after two seconds, which may be too short on a busy machine.
    await until(`${text} is found`, async () => {
      await page.locator('body').press('/')
      await page.locator(':focus').fill(text)
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'Search', level: 1 }).waitFor()
      return found.waitFor({ timeout: 15_000 }).then(
        () => true,
        () => false,
      )
    })
  }
  await page.goto(`${console.origin}/console/wallets?workspace=${workspaceId}&page=${count / 20 - 1}`)
  await page.getByText(`${count - 19}–${count} of ${count}`).waitFor()
  await page.getByRole('cell', { name: 'Customer 1', exact: true }).waitFor()
})
