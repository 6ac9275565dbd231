import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { adminEnvironment, adminJson, adminProgram, runAdmin } from '../setup/admin-command.ts'
import { type Credentials, call, createPath } from '../setup/client.ts'
import { act, type ConsoleTest, dialog, givenReason, startConsole } from '../setup/console.ts'
import { until } from '../setup/until.ts'

/** What operators do from the first workspace on: once in the browser alone, and once with `npm run admin` alone. */

let console: ConsoleTest
beforeAll(async () => {
  console = await startConsole()
})
afterAll(() => console.stop())
afterEach(() => console.closePages())

/** Each walk has many steps. This only ends one that hangs. */
const hangMs = 600_000

/** The actions of a workspace in the audit, with their reasons, oldest first. */
async function auditOf(workspaceId: string): Promise<[string, string | null][]> {
  const { entries } = await console.system.admin.audit.list.query({ workspaceId })
  return entries.toReversed().map(({ action, reason }) => [action, reason])
}

const idIn = (page: Page) => new URL(page.url()).pathname.split('/').at(-1)!
const goTo = (page: Page, name: string) => page.getByRole('link', { name, exact: true }).first().click()

test(
  'in the browser: workspace, key, wallets, a live transfer, a refused call, a reversal, a colleague, audit, verification',
  async () => {
    const page = await console.signIn('/workspaces')
    const name = `Shop ${randomUUID()}`
    await act(page, 'Create a workspace', { Name: name })
    await page.getByRole('heading', { name, level: 1 }).waitFor()
    const workspaceId = idIn(page)
    await act(page, 'Add a member', { 'User ID': 'till@shop.example' })
    await page.getByRole('cell', { name: 'till@shop.example' }).waitFor()

    await goTo(page, 'Keys')
    await page.getByRole('button', { name: 'Issue a key' }).click()
    await dialog(page).getByLabel('Name').fill('Till')
    await dialog(page).getByLabel('Owner').fill('till@shop.example')
    await dialog(page).getByLabel('transfer:create').check()
    await dialog(page).getByLabel('Reason').fill(givenReason)
    await dialog(page).getByRole('button', { name: 'Issue a key' }).click()
    await dialog(page).getByText('it is shown only once').waitFor()
    const [apiKey, apiSecret] = (await dialog(page).locator('code').allTextContents()) as [string, string]
    const credentials: Credentials = { baseUrl: console.system.baseUrl, apiKey, apiSecret }
    await dialog(page).locator('button', { hasText: 'Close' }).click()

    const wallets: string[] = []
    for (const [wallet, amount] of [
      ['Till', '20.00'],
      ['Safe', '500.00'],
    ] as const) {
      await goTo(page, 'Wallets')
      await act(page, 'Create a wallet', { Name: wallet, Currency: 'EUR' })
      await page.getByRole('heading', { name: wallet, level: 1 }).waitFor()
      wallets.push(idIn(page))
      await act(page, 'Deposit', { Amount: amount })
      await page.getByRole('cell', { name: 'Deposit' }).waitFor()
    }

    // A second page follows the events while the client makes a transfer.
    const follower = await console.signIn(`/events?workspace=${workspaceId}`)
    await follower.getByRole('cell', { name: 'wallet.deposited' }).first().waitFor()
    const [sourceWalletId, targetWalletId] = wallets
    const order = { sourceWalletId, targetWalletId, amount: '12.50', currency: 'EUR', bizId: 'end-of-day' }
    expect((await call(credentials, 'POST', createPath, order)).status).toBe(200)
    await follower.getByRole('cell', { name: 'transfer.completed' }).waitFor()
    await goTo(follower, 'Transfers')
    await follower.getByRole('cell', { name: 'end-of-day' }).waitFor()

    const refused = await call(credentials, 'POST', createPath, { ...order, bizId: 'next' }, { secret: 'another' })
    expect(refused.body.code).toBe('GA2012')
    await goTo(page, 'Refusals')
    await page.getByLabel('Request ID').fill(refused.headers.get('x-request-id')!)
    await until('the gateway has reported the refused call', async () => {
      await page.getByRole('button', { name: 'Apply' }).click()
      await page.locator('[aria-busy=true]').first().waitFor({ state: 'detached' })
      return page.getByRole('cell', { name: /GA2012/ }).isVisible()
    })
    await page.locator('summary').first().click()
    await page.getByRole('listitem').filter({ hasText: 'The signature is valid' }).getByText('Refused').waitFor()

    await goTo(page, 'Transfers')
    await page
      .getByRole('row', { name: /end-of-day/ })
      .getByRole('link')
      .first()
      .click()
    await act(page, 'Reverse')
    await page.getByRole('heading', { name: 'Reversals' }).waitFor()

    await page.goto(`${console.origin}/console/keys/${apiKey}?workspace=${workspaceId}`)
    await act(page, 'Rotate', { 'Grace period in hours': '0' })
    await dialog(page).getByText('it is shown only once').waitFor()
    const [, newSecret] = (await dialog(page).locator('code').allTextContents()) as [string, string]
    await dialog(page).locator('button', { hasText: 'Close' }).click()
    const status = async (secret: string) =>
      (await call({ ...credentials, apiSecret: secret }, 'GET', '/api/v1/wallets')).status
    expect([await status(apiSecret), await status(newSecret)]).toEqual([401, 200])
    await act(page, 'Disable')
    await page.getByRole('button', { name: 'Enable' }).waitFor()
    expect(await status(newSecret)).toBe(403)

    await goTo(page, 'Operators')
    await act(page, 'Create an operator', { Name: 'colleague' })
    await dialog(page).getByText('it is shown only once').waitFor()
    const token = (await dialog(page).locator('code').textContent())!
    await dialog(page).locator('button', { hasText: 'Close' }).click()

    // The colleague sees all of it, with the reasons, and verifies the ledger.
    const colleague = await console.signIn(`/audit?workspace=${workspaceId}`, { token })
    const expected = [
      ['workspace.create', null],
      ['member.add', null],
      ['key.create', givenReason],
      ['wallet.create', null],
      ['wallet.deposit', givenReason],
      ['wallet.create', null],
      ['wallet.deposit', givenReason],
      ['transfer.reverse', givenReason],
      ['key.rotate', givenReason],
      ['key.disable', givenReason],
    ] as const
    expect(await auditOf(workspaceId)).toEqual(expected)
    for (const [action, reason] of expected) {
      const row = colleague.getByRole('row').filter({ has: colleague.getByRole('cell', { name: action, exact: true }) })
      await row.first().waitFor()
      if (reason !== null) await row.first().getByRole('cell', { name: reason, exact: true }).waitFor()
    }
    await goTo(colleague, 'Ledger')
    await colleague.getByRole('button', { name: 'Verify all workspaces' }).click()
    await colleague.getByText('The ledger is sound.').waitFor()
  },
  hangMs,
)

test(
  'with npm run admin: the same',
  async () => {
    const { system } = console
    const run = (line: string, ...texts: string[]) => adminJson(system, line, ...texts)
    const { workspaceId } = await run('workspace create --name', 'A second shop')
    const workspace = `--workspace ${workspaceId}`
    await run(`member add ${workspace} --user till@shop.example`)
    const scopes = 'wallet:read,transfer:read,transfer:create'
    const issued = await run(
      `key create ${workspace} --owner till@shop.example --scopes ${scopes} --reason`,
      'a new till',
    )
    const credentials: Credentials = { baseUrl: system.baseUrl, apiKey: issued.apiKey!, apiSecret: issued.apiSecret! }
    const wallets: string[] = []
    for (const name of ['Till', 'Safe']) {
      const { walletId } = await run(`wallet create ${workspace} --currency EUR --name ${name}`)
      wallets.push(walletId!)
      await run(
        `wallet deposit ${workspace} --wallet ${walletId} --amount 20 --biz-id fund-${name} --reason`,
        'paid in',
      )
    }

    const args = ['event', 'tail', '--workspace', workspaceId!, '--after', '0', '--follow', '--json']
    const follower = spawn(process.execPath, [adminProgram, ...args], { env: adminEnvironment(system) })
    let printed = ''
    follower.stdout.on('data', chunk => (printed += chunk))
    const closed = once(follower, 'close')
    await until('it prints the deposits', () => printed.includes('fund-Safe'))
    const [sourceWalletId, targetWalletId] = wallets
    const order = { sourceWalletId, targetWalletId, amount: '12.50', currency: 'EUR', bizId: 'end-of-day' }
    expect((await call(credentials, 'POST', createPath, order)).status).toBe(200)
    await until('it prints the transfer', () => printed.includes('"bizId":"end-of-day"'))
    follower.kill('SIGINT')
    expect(await closed).toEqual([0, null])

    const refused = await call(credentials, 'POST', createPath, { ...order, bizId: 'next' }, { secret: 'another' })
    const requestId = refused.headers.get('x-request-id')!
    const [refusal] = await until('the gateway has reported the refused call', async () => {
      const { refusals } = await adminJson<{ refusals: object[] }>(system, `refusal list --request ${requestId}`)
      return refusals.length > 0 && refusals
    })
    expect(refusal).toMatchObject({ code: 'GA2012', step: 'signature', apiKey: credentials.apiKey })

    const reversal = '--transfer end-of-day --amount 12.50 --currency EUR --biz-id undo'
    await run(`transfer reverse ${workspace} ${reversal} --reason`, 'a wrong amount')
    const rotated = await run(`key rotate --key ${credentials.apiKey} --reason`, 'a lost laptop')
    const status = async (apiSecret: string) =>
      (await call({ ...credentials, apiSecret }, 'GET', '/api/v1/wallets')).status
    expect([await status(credentials.apiSecret), await status(rotated.apiSecret!)]).toEqual([401, 200])
    await run(`key disable --key ${credentials.apiKey} --reason`, 'the till is closed')
    expect(await status(rotated.apiSecret!)).toBe(403)

    const colleague = await run('operator create --name second-colleague --role viewer --reason', 'a new auditor')
    const asColleague = { ...system, adminToken: colleague.token! }
    const { stdout } = await runAdmin(asColleague, `audit list ${workspace}`)
    for (const reason of ['a new till', 'paid in', 'a wrong amount', 'a lost laptop', 'the till is closed'])
      expect(stdout).toContain(reason)
    const { entries } = await adminJson<{ entries: object[] }>(asColleague, 'audit list --target second-colleague')
    expect(entries).toMatchObject([{ action: 'operator.create', reason: 'a new auditor' }])
    expect(await adminJson(asColleague, 'ledger verify')).toMatchObject({ ok: true })
    const shown = (await auditOf(workspaceId!)).map(([action]) => action)
    expect(shown.slice(-3)).toEqual(['transfer.reverse', 'key.rotate', 'key.disable'])
  },
  hangMs,
)
