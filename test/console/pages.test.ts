import { randomUUID } from 'node:crypto'
import { Decimal, formatBalance } from '@workspace-wallet/contract'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createMarketplace } from '../../cli/start/marketplace.ts'
import { expectAccessible } from '../setup/chromium.ts'
import { call } from '../setup/client.ts'
import { type ConsoleTest, startConsole } from '../setup/console.ts'
import { execute } from '../setup/database.ts'
import { until } from '../setup/until.ts'

/** Every page with the data of the demo, in both languages and themes, on wide and narrow screens. */

let console: ConsoleTest
let workspaceId: string
beforeAll(async () => {
  console = await startConsole()
  // A call that is refused, because its signature is wrong.
  await call({ ...console.system, apiSecret: 'wrong' }, 'GET', '/api/v1/wallets')
  ;({ workspaceId } = await createMarketplace(console.system.coreUrl, console.system))
})
afterAll(() => console.stop())
afterEach(() => console.closePages())

/** The pages of the navigation, with what each shows of the demo. */
const pages = [
  { path: '', en: 'Overview', zh: '概览', shows: 'gateway:g' },
  { path: 'workspaces', en: 'Workspaces', zh: '工作空间', shows: 'wsp_' },
  { path: 'keys', en: 'Keys', zh: '密钥', shows: 'Bookkeeping' },
  { path: 'wallets', en: 'Wallets', zh: '钱包', shows: 'Café Zürich' },
  { path: 'transfers', en: 'Transfers', zh: '转账', shows: 'demo-refund' },
  { path: 'holds', en: 'Holds', zh: '预授权', shows: 'demo-hold-open' },
  { path: 'events', en: 'Events', zh: '事件', shows: 'hold.released' },
  { path: 'webhooks', en: 'Webhooks', zh: 'Webhook', shows: 'https://shop.example/events' },
  { path: 'refusals', en: 'Refusals', zh: '拒绝记录', shows: 'GA2012' },
  { path: 'ledger', en: 'Ledger', zh: '账本', shows: '' },
  { path: 'operators', en: 'Operators', zh: '操作员', shows: '' },
  { path: 'audit', en: 'Audit', zh: '审计', shows: 'webhook.pause' },
]

const settled = (page: Page) => page.locator('[aria-busy=true]').first().waitFor({ state: 'detached' })

describe.each([
  { locale: 'en-US', colorScheme: 'dark', viewport: { width: 1280, height: 900 } },
  { locale: 'zh-CN', colorScheme: 'light', viewport: { width: 390, height: 800 } },
] as const)('$locale, $colorScheme, $viewport.width px wide', options => {
  test('every page of the navigation shows the demo, and is accessible', async () => {
    const page = await console.signIn(`/wallets?workspace=${workspaceId}`, options)
    const isChinese = options.locale === 'zh-CN'
    for (const { path, en, zh, shows } of pages) {
      const name = isChinese ? zh : en
      if (options.viewport.width < 768) await page.getByRole('button', { name: isChinese ? '菜单' : 'Menu' }).click()
      await page.getByRole('link', { name, exact: true }).first().click()
      await page.getByRole('heading', { name, level: 1, exact: true }).waitFor()
      if (shows) await page.locator('td, .empty').getByText(shows).first().waitFor()
      await settled(page)
      expect(new URL(page.url()).pathname.replace(/\/$/, '')).toBe(`/console/${path}`.replace(/\/$/, ''))
      await expectAccessible(page)
    }
  })

  test('the pages of a workspace, a wallet, a transfer and a key are accessible', async () => {
    const { admin } = console.system
    const caller = { requestId: 'test' }
    const { content: wallets } = await admin.wallets.list.query({ workspaceId, caller, filter: { currency: 'EUR' } })
    const { content: transfers } = await admin.transfers.list.query({ workspaceId, caller, size: 1 })
    const { keys } = await admin.apiKeys.list.query({ workspaceId })
    const hopper = wallets.find(({ name }) => name === 'Grace Hopper')!
    const page = await console.signIn('', options)
    for (const [path, shows] of [
      [`workspaces/${workspaceId}`, 'Bookkeeping'],
      [`wallets/${hopper.walletId}?workspace=${workspaceId}`, 'demo-hold-open'],
      [`transfers/${transfers[0]!.transferId}`, transfers[0]!.bizId],
      [`keys/${keys[0]!.apiKey}`, 'transfer:reverse'],
      [`search?text=${transfers[0]!.bizId}`, 'bizId'],
    ] as const) {
      await page.goto(`${console.origin}/console/${path}`)
      await page.locator('td, dd, .empty').getByText(shows).first().waitFor()
      await settled(page)
      await expectAccessible(page)
    }
  })
})

test('the overview draws the transfers of the demo by hour, and their volume in each currency', async () => {
  const page = await console.signIn()
  const { totals } = await console.system.admin.system.activity.query({})
  const transfers = totals.reduce((sum, each) => sum + each.transfers, 0)
  await page.getByRole('img', { name: `Transfers by hour: ${transfers} in all` }).waitFor()
  for (const currency of new Set(totals.map(each => each.currency))) {
    await page.getByRole('combobox', { name: 'Currency' }).selectOption(currency)
    const volume = Decimal.sum(...totals.filter(each => each.currency === currency).map(each => each.volume))
    await page
      .getByRole('img', { name: `Volume by hour: ${formatBalance(volume, currency)} ${currency} in all` })
      .waitFor()
  }
})

test.each([
  {
    locale: 'en-US',
    versions: 'run different versions Gateways',
    lost: 'Not seen since',
    fault: 'Impaired nonces: no answer',
  },
  { locale: 'zh-CN', versions: '运行不同版本 网关', lost: '最后一次出现', fault: '受影响 nonces: no answer' },
] as const)('the overview shows which instances run, in $locale', async ({ locale, versions, lost, fault }) => {
  const { admin, gatewayClient, database } = console.system
  const [sound, gone] = [randomUUID(), randomUUID()]
  const report = { host: 'host', uptimeMs: 1, waiting: 0, unhealthyCores: 0 }
  const impaired = { ...report, instanceId: sound, version: '9.9.9', fault: 'nonces: no answer' }
  await gatewayClient.instances.report.mutate(impaired)
  await gatewayClient.instances.report.mutate({ ...report, instanceId: gone, version: '1.0.0', fault: null })
  await until('both are stored', async () => {
    const { instances } = await admin.system.status.query()
    return [sound, gone].every(id => instances.some(({ instanceId }) => instanceId === id))
  })
  await execute(database.ownerUrl, `update instance set seen_at = seen_at - interval '31 s' where id = '${gone}'`)
  const page = await console.signIn('', { locale })
  await page.getByRole('status').filter({ hasText: versions }).waitFor()
  await page.getByRole('row', { name: `gateway:g host 1.0.0 ${lost}` }).waitFor()
  await page.getByRole('row', { name: `gateway:g host 9.9.9 ${fault}` }).waitFor()
  await page.getByRole('row', { name: /^core / }).waitFor()
  await expectAccessible(page)
  for (const instanceId of [sound, gone]) await gatewayClient.instances.leave.mutate({ instanceId })
  await until('both have left', async () => {
    const { instances } = await admin.system.status.query()
    return !instances.some(({ host }) => host === 'host')
  })
})

test('the pages fit into a window of 768 px', async () => {
  const page = await console.signIn('', { viewport: { width: 768, height: 900 } })
  for (const { path, en, shows } of pages) {
    await page.goto(`${console.origin}/console/${path}?workspace=${workspaceId}`)
    await page.getByRole('heading', { name: en, level: 1, exact: true }).waitFor()
    if (shows) await page.locator('td, .empty').getByText(shows).first().waitFor()
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth'), path).toBeLessThanOrEqual(0)
  }
})

test('a viewer can press every button that they see: none opens a form, and core refuses nothing', async () => {
  const { admin } = console.system
  const { token } = await admin.operators.create.mutate({ name: 'viewer', role: 'viewer' })
  const { content: wallets } = await admin.wallets.list.query({ workspaceId, caller: { requestId: 'test' } })
  const { content: transfers } = await admin.transfers.list.query({ workspaceId, caller: { requestId: 'test' } })
  const { keys } = await admin.apiKeys.list.query({ workspaceId })
  const records = [
    `workspaces/${workspaceId}`,
    `wallets/${wallets[0]!.walletId}`,
    `transfers/${transfers[0]!.transferId}`,
    `keys/${keys[0]!.apiKey}`,
  ]
  const page = await console.signIn('', { token })
  const refused: string[] = []
  page.on('response', response => {
    // Everything that changes something is a POST.
    if (response.status() === 403 || response.request().method() === 'POST') refused.push(response.url())
  })
  for (const path of [...pages.map(each => each.path), ...records]) {
    const open = async () => {
      await page.goto(`${console.origin}/console/${path}?workspace=${workspaceId}`)
      await page.locator('td, dd, .empty').first().waitFor()
      await settled(page)
    }
    await open()
    const names = await page
      .locator('main button:enabled')
      .evaluateAll(buttons => buttons.map(button => button.getAttribute('aria-label') ?? button.textContent))
    const address = page.url()
    for (const name of new Set(names.filter(each => each !== null && !each.startsWith('Copy')))) {
      const button = page.locator('main').getByRole('button', { name: name!, exact: true }).first()
      await button.click()
      await settled(page)
      expect(await page.getByRole('dialog').count(), `${path}: ${name}`).toBe(0)
      if (page.url() !== address) await open()
    }
  }
  expect(refused).toEqual([])
})
