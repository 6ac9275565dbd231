import { readFile, writeFile } from 'node:fs/promises'
import { uuidFromId } from '@workspace-wallet/contract'
import type { Download, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { adminJson } from '../setup/admin-command.ts'
import { type ConsoleTest, dialog, givenReason, startConsole } from '../setup/console.ts'
import { execute } from '../setup/database.ts'
import { moveTransfersToPast } from '../setup/past.ts'
import { createWallet, createWorkspace } from '../setup/workspaces.ts'

/** What an operator does on the page Ledger, and the files that the console makes. */

let console: ConsoleTest
beforeAll(async () => {
  console = await startConsole()
})
afterAll(() => console.stop())
afterEach(() => console.closePages())

/** A workspace with a wallet whose balance somebody has changed in the database, and which core has halted. */
async function haltedWorkspace(): Promise<{ workspaceId: string; walletId: string }> {
  const { admin, database } = console.system
  const workspaceId = await createWorkspace({ admin })
  const walletId = await createWallet({ admin, workspaceId }, { deposits: ['10.00'] })
  await execute(
    database.ownerUrl,
    `set session_replication_role = replica;
     update wallet set balance = balance + 1 where id = '${uuidFromId('wallet', walletId)}';
     update ledger set status = 'HALTED', halt_reason = 'somebody wrote past it'
     where workspace_id = '${uuidFromId('workspace', workspaceId)}'`,
  )
  return { workspaceId, walletId }
}

const buttonOf = (page: Page, workspaceId: string, name: string) =>
  page.getByRole('row', { name: workspaceId }).getByRole('button', { name })

describe('a halted workspace', () => {
  test('is repaired: first the operator sees what would change, and afterwards it is open', async () => {
    const { admin } = console.system
    const { workspaceId, walletId } = await haltedWorkspace()
    const page = await console.signIn('/ledger')
    await page.getByRole('cell', { name: 'somebody wrote past it' }).waitFor()
    await buttonOf(page, workspaceId, 'Repair').click()
    await dialog(page).getByRole('button', { name: 'Show what would change' }).click()
    await dialog(page).getByText('Nothing was changed. A repair would change').waitFor()
    await dialog(page).getByText('"balance":"11.00"').first().waitFor()
    const { ledgers } = await admin.ledger.halted.query()
    expect(ledgers.map(each => each.workspaceId)).toContain(workspaceId)

    await dialog(page).getByLabel('Reason').fill(givenReason)
    await dialog(page).getByRole('button', { name: 'Repair', exact: true }).dblclick()
    await dialog(page).getByText('The workspace is open.').waitFor()
    await dialog(page).getByRole('button', { name: 'Cancel' }).click()
    await page.getByText('No workspace is halted.').waitFor()
    const { entries } = await admin.audit.list.query({ workspaceId, action: 'ledger.repair' })
    expect(entries.map(({ target, reason }) => [target, reason])).toEqual([
      [workspaceId, givenReason],
      [walletId, givenReason],
    ])
    const caller = { requestId: 'test' }
    expect((await admin.wallets.balance.query({ workspaceId, walletId, caller })).balance.toFixed(2)).toBe('10.00')
  })

  test('is not reopened while rules are broken, unless the operator insists', async () => {
    const { admin } = console.system
    const { workspaceId } = await haltedWorkspace()
    const page = await console.signIn('/ledger')
    await buttonOf(page, workspaceId, 'Reopen').click()
    await dialog(page).getByLabel('Reason').fill('sound, I think')
    await dialog(page).getByRole('button', { name: 'Reopen', exact: true }).click()
    await dialog(page).getByText('The workspace stays halted').waitFor()
    await dialog(page).getByText('its balance is 11.00, but its flows sum to 10.00').first().waitFor()
    await dialog(page).getByLabel('Reopen it even if rules are broken').check()
    await dialog(page).getByLabel('Reason').fill(givenReason)
    await dialog(page).getByRole('button', { name: 'Reopen', exact: true }).click()
    await dialog(page).getByText('The workspace is open.').waitFor()
    await dialog(page).getByRole('button', { name: 'Cancel' }).click()
    await page.getByText('No workspace is halted.').waitFor()
    const { entries } = await admin.audit.list.query({ workspaceId, action: 'ledger.reopen' })
    expect(entries).toMatchObject([{ reason: givenReason }])
  })
})

async function downloadOf(page: Page, button: string | RegExp): Promise<{ download: Download; path: string }> {
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: button }).click(),
  ])
  return { download, path: await download.path() }
}

test('a checkpoint is saved as a file, which shows that history was removed since', async () => {
  const { system } = console
  const { admin } = system
  const workspaceId = await createWorkspace({ admin })
  const walletId = await createWallet({ admin, workspaceId }, { deposits: ['1.00'] })
  const page = await console.signIn(`/ledger?workspace=${workspaceId}`)
  const { download, path } = await downloadOf(page, 'Take a checkpoint')
  await page.getByText(`The checkpoint was saved as ${download.suggestedFilename()}`).waitFor()
  const { entries } = await admin.audit.list.query({ workspaceId, action: 'ledger.checkpoint' })
  expect(entries).toMatchObject([{ after: { wallets: 2 } }])
  const byCommand = await adminJson(system, `ledger verify --workspace ${workspaceId} --against ${path}`)
  expect(byCommand).toMatchObject({ ok: true, checkpoint: { fault: null, wallets: 2 } })

  const file = page.locator('input[type=file]')
  const compare = page.getByRole('button', { name: 'Verify the chosen workspace' })
  await file.setInputFiles(path)
  await compare.click()
  await page.getByText('It continues the checkpoint of').waitFor()
  const changed = `${path}.changed`
  await writeFile(changed, (await readFile(path, 'utf8')).replace(/"sequence":1/, '"sequence":2'))
  await file.setInputFiles(changed)
  await compare.click()
  await page.getByText('The checkpoint was not compared, because part 0 was changed').waitFor()
  await execute(
    system.database.ownerUrl,
    `set session_replication_role = replica;
     delete from transfer where target_wallet_id = '${uuidFromId('wallet', walletId)}'`,
  )
  await file.setInputFiles(path)
  await compare.click()
  await page.getByText('It was compared with the checkpoint of').waitFor()
  await page
    .getByRole('cell', { name: /the checkpoint names sequence 1, and it is at 0|does not exist/ })
    .first()
    .waitFor()

  const { token } = await admin.operators.create.mutate({ name: 'auditor', role: 'viewer' })
  const viewer = await console.signIn(`/ledger?workspace=${workspaceId}`, { token })
  await viewer.getByRole('button', { name: 'Verify the chosen workspace' }).waitFor()
  expect(await viewer.locator('input[type=file]').count()).toBe(0)
})

test('the CSV of a statement is that of npm run admin, and its name has the range of the statement', async () => {
  const { system } = console
  const { admin, database } = system
  const workspaceId = await createWorkspace({ admin })
  const walletId = await createWallet({ admin, workspaceId }, { deposits: ['10.00', '0.50'] })
  await admin.wallets.withdraw.mutate({ workspaceId, walletId, amount: '3.25', bizId: 'out' })
  await moveTransfersToPast(database.ownerUrl, workspaceId)
  const page = await console.signIn(`/wallets/${walletId}?workspace=${workspaceId}`)
  const form = page.getByRole('form', { name: 'Statement' })
  await form.getByLabel('From').fill('2026-01-01T00:00')
  await page.getByRole('button', { name: 'Show the statement' }).click()
  await page.getByText('Closing balance').waitFor()
  await form.getByLabel('From').fill('2025-12-24T00:00')
  const { download, path } = await downloadOf(page, 'Download CSV with 3 flows')
  expect(download.suggestedFilename()).toMatch(new RegExp(`^${walletId}-2026-01-01-\\d{4}-\\d\\d-\\d\\d\\.csv$`))
  const csv = await readFile(path, 'utf8')
  const rows = csv.split('\r\n').map(line => line.split(','))
  const timeOf = (type: string) => rows.find(row => row[3] === type)![1]
  const file = `${path}.csv`
  const range = `--from ${timeOf('OPENING')} --to ${timeOf('CLOSING')}`
  await adminJson(system, `statement export --workspace ${workspaceId} --wallet ${walletId} ${range} --out ${file}`)
  expect(csv).toBe(await readFile(file, 'utf8'))
})

test('a time in an address that is none is ignored', async () => {
  const { workspaceId } = console.system
  const page = await console.signIn(`/audit?from=yesterday&workspace=${workspaceId}`)
  await page.getByRole('cell', { name: 'workspace.create' }).waitFor()
  await page.goto(`${console.origin}/console/wallets?createdFrom=yesterday&workspace=${workspaceId}`)
  await page.getByRole('cell', { name: 'Main', exact: true }).waitFor()
})
