import { randomUUID } from 'node:crypto'
import { bodyHash, canonicalMessage, sign, signedHeaders } from '@workspace-wallet/client'
import type { BrowserContextOptions, Locator, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { axeOf, Chromium, expectAccessible } from './setup/chromium.ts'
import { call, createPath } from './setup/client.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { createTenant, createWallet } from './setup/workspaces.ts'

/** The pages of the documentation, in Chromium, as a reader uses them. */

let system: System
let browser: Chromium
beforeAll(async () => {
  // A host that is not this machine: a page from it is no secure context.
  const args = ['--host-resolver-rules=MAP docs.test 127.0.0.1']
  ;[system, browser] = await Promise.all([startSystem({ gatewayEnvironment: { DOCS: 'on' } }), Chromium.start(args)])
})
afterAll(async () => {
  await browser?.stop()
  await system.stop()
})
afterEach(() => browser.closePages())

const open = (path: string, options: BrowserContextOptions = {}, baseUrl = system.baseUrl): Promise<Page> =>
  browser.open(baseUrl + path, options)

async function enterKey(page: Page, { apiKey, apiSecret } = system): Promise<void> {
  await page.getByLabel('API key', { exact: true }).fill(apiKey)
  await page.getByLabel('API secret').fill(apiSecret)
  await page.getByRole('button', { name: 'Use this key' }).click()
  await page.locator('#key-status .verdict').waitFor()
}

const operation = (page: Page, title: string): Locator =>
  page.getByRole('form', { name: `Try it ${title}`, exact: true })

/**
 * Sends a form whose request succeeds. As a reader does, it sends it again while the service is unavailable (S002). Any other
 * response ends the test, and is in its error.
 */
async function send(form: Locator): Promise<void> {
  await until('the service is available', async () => {
    await form.getByRole('button', { name: 'Send' }).click()
    await form.and(form.page().locator('[aria-busy=false]')).waitFor()
    const outcome = await form.locator('.outcome').innerText()
    if (outcome.includes('S002')) return false
    expect(outcome).toContain('200 OK')
    return true
  })
}

const unfold = (page: Page, within: string) =>
  page.evaluate(`for (const each of document.querySelectorAll('${within} details')) each.open = true`)

/** Clicks again if the first click did nothing, which was seen on a busy machine. */
async function unfoldOptional(form: Locator): Promise<void> {
  await until('the optional fields are unfolded', async () => {
    if (await form.locator('details.optional[open]').count()) return true
    await form.getByText('Optional:').click()
    return false
  })
}

const isFocused = (page: Page, locator: Locator): Promise<boolean> =>
  locator
    .and(page.locator(':focus'))
    .count()
    .then(count => count === 1)

/** Where a page could keep what it was told. */
const everythingKept = `(async () => JSON.stringify([document.documentElement.outerHTML, { ...localStorage },
  { ...sessionStorage }, document.cookie, await indexedDB.databases(), await caches.keys(), history.state, location.href]))()`

/** Each width, and each scheme of colors. */
const looks = [
  { width: 390, colorScheme: 'light' },
  { width: 1280, colorScheme: 'dark' },
] as const

describe('the API reference', () => {
  test('a reader enters a key, and makes a signed transfer between the wallets that the page proposes', async () => {
    const page = await open('/docs')
    await enterKey(page)
    await page.getByText('The key works.').waitFor()
    await page.getByRole('link', { name: 'Create a transfer between' }).click()
    const form = operation(page, 'Create a transfer order')
    await send(form)
    const answer = JSON.parse((await form.locator('.outcome pre').first().textContent())!)
    const { body } = await call(system, 'GET', `/api/v1/transfer/query/orders/${answer.data.transferId}`)
    expect(body.data).toEqual(answer.data)
    const [main, savings] = system.wallets
    expect(body.data).toMatchObject({ sourceWalletId: main!.walletId, targetWalletId: savings!.walletId })
  })

  test('shows what was sent: the request, its headers, and the canonical message that they sign', async () => {
    const page = await open('/docs')
    await enterKey(page)
    const form = operation(page, 'List wallets')
    await unfoldOptional(form)
    await form.getByLabel('size').fill('1')
    for (const sort of ['currency,asc', 'name,desc']) {
      await form.getByRole('button', { name: 'Add a sort' }).click()
      await form.getByLabel('sort').last().selectOption(sort)
    }
    await send(form)
    await form.getByText('What was sent').click()
    const [request, message] = await form.locator('details:has-text("What was sent") pre').allTextContents()
    const [first, ...headers] = request!.split('\n')
    expect(first).toBe('GET /api/v1/wallets?size=1&sort=currency%2Casc&sort=name%2Cdesc')
    const sent = Object.fromEntries(headers.map(line => line.split(': ') as [string, string]))
    const parts = { method: 'GET', path: '/api/v1/wallets', bodyHash: await bodyHash('') }
    const expected = canonicalMessage({ ...parts, timestamp: sent['X-Timestamp']!, nonce: sent['X-Nonce']! })
    expect(message!.replaceAll('↵', '')).toBe(expected)
    expect(sent['X-Signature']).toBe(await sign(system.apiSecret, expected))
  })

  test('shows the sentence of a refusal', async () => {
    const page = await open('/docs')
    await enterKey(page)
    const form = operation(page, 'Create a transfer order')
    await form.getByLabel('amount').fill('999999')
    await form.getByRole('button', { name: 'Send' }).click()
    await form.getByText('422 Unprocessable Entity T002 INSUFFICIENT_BALANCE').waitFor()
    const { detail } = JSON.parse((await form.locator('.outcome pre').first().textContent())!)
    expect(await form.locator('.detail').textContent()).toBe(detail)
  })

  test('every operation can be sent from its form', async () => {
    const tenant = { ...(await createTenant(system)), admin: system.admin }
    for (const deposits of [['100'], ['100']]) await createWallet(tenant, { deposits })
    const page = await open('/docs')
    await enterKey(page, { ...system, ...tenant })
    // In the order of the page: what an earlier operation answers, a later one is proposed.
    for (const form of await page.locator('form.try').all()) {
      for (const input of await form.locator('input[data-suggestions][required]').all()) {
        if ((await input.inputValue()) !== '') continue
        await input.press('ArrowDown')
        await input.press('ArrowDown')
        await input.press('Enter')
        if ((await input.inputValue()) === '') await input.fill('unknown')
      }
      for (const select of await form.locator('select[required]').all()) await select.selectOption({ index: 1 })
      await form.getByRole('button', { name: 'Send' }).click()
      await form.locator('.outcome .verdict').waitFor()
      const answer = JSON.parse((await form.locator('.outcome pre').first().textContent())!)
      // A hold or a transfer can be used up, and there is no webhook yet.
      expect(answer.code, (await form.getAttribute('data-path')) as string).toMatch(/^(2000|[WTH]\d{3}|E002)$/)
    }
  })

  test('a statement is proposed for the last day, and an ID that must be chosen has a hint where from', async () => {
    const page = await open('/docs')
    await enterKey(page)
    const form = operation(page, "Get a wallet's statement")
    const [from, to] = [await form.getByLabel('from').inputValue(), await form.getByLabel('to').inputValue()]
    const hoursAgo = (time: string) => (Date.now() - Date.parse(time)) / 3_600_000
    expect([Math.floor(hoursAgo(from)), Math.floor(hoursAgo(to))]).toEqual([24, 0])
    await send(form)
    await operation(page, 'Get a webhook').getByText('send “List webhooks” first to choose one').waitFor()
  })

  test('markup in an answer is shown as text', async () => {
    const name = '<img src=x onerror=alert(1)>'
    const tenant = { ...(await createTenant(system)), admin: system.admin }
    await createWallet(tenant, { name })
    const page = await open('/docs')
    await enterKey(page, { ...system, ...tenant })
    await page.locator('#key-wallets').getByText(name).waitFor()
    const form = operation(page, 'List wallets')
    await form.getByRole('button', { name: 'Send' }).click()
    await form.getByText(name).waitFor()
    expect(await page.locator('img').count()).toBe(0)
  })

  test('a wrong secret is refused, and the page says where to look', async () => {
    const page = await open('/docs')
    await enterKey(page, { ...system, apiSecret: 'not-the-secret' })
    const status = page.locator('#key-status')
    await status.getByText('401 Unauthorized GA2012 SIGNATURE_INVALID').waitFor()
    await status.getByText('This is not the secret of this key.').waitFor()
    await enterKey(page)
    await status.getByText('The key works.').waitFor()
    await page.getByLabel('API secret').fill('not-the-secret')
    const form = operation(page, 'List wallets')
    await form.getByRole('button', { name: 'Send' }).click()
    await form.getByRole('link', { name: 'signature debugger' }).waitFor()
    await status.getByText('This is not the secret of this key.').waitFor()
    // The page signed itself: the five lines of the server would mislead.
    await expect(page.getByText('Compare them with yours').filter({ visible: true }).count()).resolves.toBe(0)
  })

  test('after a command, the balances are current, and the form proposes another bizId', async () => {
    const tenant = { ...(await createTenant(system)), admin: system.admin }
    for (const name of ['One', 'Two']) await createWallet(tenant, { name, deposits: ['100'] })
    const page = await open('/docs')
    await enterKey(page, { ...system, ...tenant })
    const wallets = page.locator('#key-wallets li')
    await wallets.filter({ hasText: 'One: 100.00 USD' }).waitFor()
    const form = operation(page, 'Create a transfer order')
    await form.getByLabel('amount').fill('30')
    const bizId = await form.getByLabel('bizId').inputValue()
    await send(form)
    await wallets.filter({ hasText: ': 130.00 USD' }).waitFor()
    await wallets.filter({ hasText: ': 70.00 USD' }).waitFor()
    const answer = JSON.parse((await form.locator('.outcome pre').first().textContent())!)
    expect(answer.data.bizId).toBe(bizId)
    expect(await form.getByLabel('bizId').inputValue()).toMatch(/^docs-[0-9a-f]{16}$/)
    expect(await form.getByLabel('bizId').inputValue()).not.toBe(bizId)
  })

  test('lists the wallets of the key, the oldest first, and says how many it does not list', async () => {
    const tenant = { ...(await createTenant(system)), admin: system.admin }
    const createWallets = async (count: number) => {
      for (let at = 0; at < count; at++) await createWallet(tenant, { name: 'Later' })
    }
    await createWallet(tenant, { name: 'Main' })
    await createWallets(9)
    const page = await open('/docs')
    await enterKey(page, { ...system, ...tenant })
    await page.getByText('Its workspace has 10 wallets, and the forms below offer them.').waitFor()
    const rows = page.locator('#key-wallets li')
    const namesShown = async () => (await rows.allTextContents()).map(row => row.replace(/:.*/, ''))
    const ten = ['Main', ...Array.from({ length: 9 }, () => 'Later')]
    expect(await namesShown()).toEqual(ten)
    await createWallets(91)
    await enterKey(page, { ...system, ...tenant })
    await page.getByText('Its workspace has 101 wallets, and the forms below offer them.').waitFor()
    expect(await namesShown()).toEqual([...ten, '… and 91 more'])
  })

  test('a form proposes no status of a wallet: the reader chooses it', async () => {
    const page = await open('/docs')
    await enterKey(page)
    const form = operation(page, 'Change a wallet’s status').or(operation(page, "Change a wallet's status"))
    expect(await form.getByLabel('status').inputValue()).toBe('')
    await form.getByRole('button', { name: 'Send' }).click()
    await form.getByText('status is required').first().waitFor()
  })

  test('signs with the time of the server if the clock of the reader is wrong', async () => {
    const page = await open('/docs')
    await page.clock.setSystemTime(Date.now() + 3_600_000)
    await enterKey(page)
    await page.getByText('The key works.').waitFor()
  })

  test('the secret is in no storage, no URL and no markup, and is gone after a reload and after going back', async () => {
    const page = await open('/docs')
    await enterKey(page)
    await page.getByRole('button', { name: 'Show' }).click()
    expect(await page.getByLabel('API secret').inputValue()).toBe(system.apiSecret)
    const form = operation(page, 'List wallets')
    await send(form)
    await form.getByText('What was sent').click()
    const kept = await page.evaluate(everythingKept)
    expect(kept).not.toContain(system.apiSecret)
    expect(browser.watched[0]!.requests.join('\n')).not.toContain(system.apiSecret)
    // A link to another page opens it beside this one, which keeps the secret.
    const beside = page.waitForEvent('popup')
    await page.getByRole('link', { name: 'Signature debugger' }).first().click()
    await (await beside).getByRole('heading', { name: 'Signature debugger' }).waitFor()
    expect(await page.getByLabel('API secret').inputValue()).toBe(system.apiSecret)
    await page.goto(`${system.baseUrl}/docs/signature`)
    await page.goBack()
    expect(await page.getByLabel('API secret').inputValue()).toBe('')
    await enterKey(page)
    await page.reload()
    expect(await page.getByLabel('API secret').inputValue()).toBe('')
  })

  test('says what is missing before it sends anything, and goes there', async () => {
    const page = await open('/docs')
    const form = operation(page, 'Get a wallet')
    await form.getByRole('button', { name: 'Send' }).click()
    await page.locator('#key-status').getByText('Enter your API key and secret.').waitFor()
    expect(await isFocused(page, page.getByLabel('API key', { exact: true }))).toBe(true)
    await page.getByLabel('API key', { exact: true }).fill(system.apiKey)
    await page.getByLabel('API secret').fill(system.apiSecret)
    await form.getByRole('button', { name: 'Send' }).click()
    await form.getByText('Enter walletId, which is part of the path.').waitFor()
    expect(browser.watched[0]!.requests.filter(url => url.includes('/api/'))).toEqual([])
  })

  test('offers all wallets by name and balance, and says which one was chosen', async () => {
    const tenant = { ...(await createTenant(system)), admin: system.admin }
    for (let at = 1; at <= 101; at++) await createWallet(tenant, { name: `Wallet ${at}`, deposits: [`${at}`] })
    const page = await open('/docs')
    await enterKey(page, { ...system, ...tenant })
    const form = operation(page, 'Create a transfer order')
    const source = form.getByLabel('sourceWalletId', { exact: true })
    await source.fill('wallet 101')
    await form.getByRole('option', { name: 'Wallet 101 101.00 USD' }).click()
    expect(await source.inputValue()).toMatch(/^wal_/)
    await form.getByText('Wallet 101: 101.00 USD').waitFor()
    await source.click()
    await form.getByText('51 more: type to find them.').waitFor()
    await source.press('Escape')
    await form.getByLabel('currency', { exact: true }).fill('chf')
    await form.getByRole('option', { name: 'CHF' }).click()
    expect(await form.getByLabel('currency', { exact: true }).inputValue()).toBe('CHF')
  })

  test('a batch is made of rows: a transfer there, one back, and a reversal of the first', async () => {
    const page = await open('/docs')
    await enterKey(page)
    const form = operation(page, 'Create a batch of transfers')
    await form.getByRole('button', { name: 'Add a transfer' }).click()
    await form.getByRole('button', { name: 'Add a transfer' }).click()
    const items = form.locator('fieldset.item')
    await items.nth(2).getByRole('button', { name: 'Remove' }).click()
    const first = await items.first().getByLabel('bizId').inputValue()
    await form.getByRole('button', { name: 'Add a reversal' }).click()
    await items.nth(2).getByLabel('reversesTransferId', { exact: true }).fill(first)
    for (const item of await items.all()) await item.getByLabel('amount').fill('1.25')
    await send(form)
    const { data } = JSON.parse((await form.locator('.outcome pre').first().textContent())!)
    const [there, back, reversal] = data.transfers
    expect([there.sourceWalletId, there.targetWalletId]).toEqual([back.targetWalletId, back.sourceWalletId])
    expect(reversal).toMatchObject({ reversesTransferId: there.transferId, amount: '1.25' })
  })

  test('an array of known values is made of boxes, and an empty one differs from none', async () => {
    const page = await open('/docs')
    const form = operation(page, 'Update a webhook')
    await unfoldOptional(form)
    const sample = page.locator('#updateWebhook .samples pre')
    await form.getByLabel('hold.created').check()
    await form.getByLabel('wallet.closed').check()
    await expect.poll(() => sample.textContent()).toContain('"types": [\n    "hold.created",\n    "wallet.closed"\n  ]')
    for (const type of ['hold.created', 'wallet.closed']) await form.getByLabel(type).uncheck()
    await expect.poll(() => sample.textContent()).not.toContain('types')
    await form.getByLabel('[], all').check()
    await expect.poll(() => sample.textContent()).toContain('"types": []')
  })

  test('the samples follow the form, in the language that was chosen, and are copied', async () => {
    const page = await open('/docs', { permissions: ['clipboard-read', 'clipboard-write'] })
    await enterKey(page)
    const form = operation(page, 'Create a transfer order')
    const samples = page.locator('#createTransfer .samples')
    await form.getByLabel('amount').fill("12.34'")
    await samples.getByText(`"amount": "12.34'\\''"`).waitFor()
    for (const [language, piece] of [
      ['TypeScript', "amount: '12.34\\'',"],
      ['Python', `"amount": "12.34'",`],
      ['Go', `"amount": "12.34'",`],
    ] as const) {
      await samples.getByRole('button', { name: language }).click()
      await samples.getByText(piece).waitFor()
    }
    const text = await samples.locator('pre').textContent()
    expect(text).toContain(system.wallets[0]!.walletId)
    expect(text).toContain(system.baseUrl)
    expect(text).not.toContain(system.apiSecret)
    await samples.getByRole('button', { name: 'Copy' }).click()
    await samples.getByRole('button', { name: 'Copied' }).waitFor()
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(text)
    await page.reload()
    await samples.scrollIntoViewIfNeeded()
    await samples.getByText('package main').waitFor()
  })

  test('an ID in an answer is copied by a click, and so is the answer', async () => {
    const page = await open('/docs', { permissions: ['clipboard-read', 'clipboard-write'] })
    await enterKey(page)
    const form = operation(page, 'List wallets')
    await form.getByRole('button', { name: 'Send' }).click()
    const { walletId } = system.wallets[0]!
    await form.getByRole('button', { name: walletId }).click()
    await page.getByText(`Copied ${walletId}`).waitFor({ state: 'attached' })
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(walletId)
    await form.locator('.outcome').getByRole('button', { name: 'Copy' }).first().click()
    await form.locator('.outcome').getByRole('button', { name: 'Copied' }).waitFor()
    const copied = JSON.parse((await page.evaluate('navigator.clipboard.readText()')) as string)
    expect(copied).toMatchObject({ success: true, data: { page: { totalElements: 3 } } })
  })

  test('the search finds operations and fields, offline, and goes to them', async () => {
    const page = await open('/openapi.json')
    const index = page.waitForResponse(/search\.json$/)
    await page.goto(`${system.baseUrl}/docs`)
    await (await index).finished()
    await page.context().setOffline(true)
    await page.keyboard.press('/')
    const search = page.getByRole('combobox', { name: 'Search the documentation' })
    expect(await isFocused(page, search)).toBe(true)
    await search.fill('reverse a tra')
    await page.getByRole('option', { name: 'Reverse a transfer' }).first().waitFor()
    await search.press('Enter')
    await page.waitForURL(`${system.baseUrl}/docs#reverseTransfer`)
    await search.fill('balanceAfter flow')
    await page.getByRole('option').first().click()
    const field = page.locator('[id="listWalletFlows.answer.balanceAfter"]')
    // It was folded.
    expect(await field.isVisible()).toBe(true)
    await search.fill('zzz-qqq')
    await page.locator('.options').first().waitFor({ state: 'hidden' })
    expect(await page.getByRole('option').filter({ visible: true }).count()).toBe(0)
  })

  test('the list of endpoints shows where the reader is', async () => {
    const page = await open('/docs')
    const current = page.locator('.contents a[aria-current]')
    for (const [id, title] of [
      ['createHold', 'Create a hold'],
      ['getWallet', 'Get a wallet'],
    ]) {
      await page.evaluate(`document.getElementById('${id}').scrollIntoView()`)
      await current.filter({ hasText: new RegExp(`${title}\\s*$`) }).waitFor()
      expect(await current.count()).toBe(1)
    }
  })

  test('on a phone, the list is folded, and its line shows where the reader is', async () => {
    const page = await open('/docs', { viewport: { width: 390, height: 800 } })
    const contents = page.locator('.contents')
    expect(await contents.getByRole('link').filter({ visible: true }).count()).toBe(0)
    await contents.locator('summary').click()
    await contents.getByRole('link', { name: 'Create a hold' }).click()
    await contents.getByText('Create a hold').filter({ visible: true }).waitFor()
    expect(await contents.getByRole('link').filter({ visible: true }).count()).toBe(0)
  })

  test('a theme that the reader chose stays, also against that of the system', async () => {
    const page = await open('/docs', { colorScheme: 'dark' })
    const scheme = () => page.evaluate('getComputedStyle(document.documentElement).colorScheme')
    expect(await scheme()).toBe('light dark')
    await page.getByLabel('Theme').selectOption('Light')
    expect(await scheme()).toBe('light')
    await page.goto(`${system.baseUrl}/docs/signature`)
    expect([await scheme(), await page.getByLabel('Theme').inputValue()]).toEqual(['light', 'light'])
    await page.getByLabel('Theme').selectOption('System')
    await page.reload()
    expect(await scheme()).toBe('light dark')
  })

  test.each(['/docs', '/docs/signature', '/docs/guides', '/docs/errors', '/docs/changelog'])(
    'the first load of %s, with the index of the search, is under 150 KB',
    async path => {
      const page = await open('/openapi.json')
      const sizes: Promise<number>[] = []
      page.on('requestfinished', request => {
        sizes.push(request.sizes().then(({ responseBodySize }) => responseBodySize))
      })
      const index = page.waitForResponse(/search\.json$/)
      await page.goto(system.baseUrl + path)
      await (await index).finished()
      // The size of a request that ends later could not be read when the page is closed.
      await page.waitForLoadState('networkidle')
      page.removeAllListeners('requestfinished')
      const total = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
      expect(total).toBeGreaterThan(10_000)
      expect(total).toBeLessThan(150_000)
    },
  )

  test('says that a page from plain HTTP cannot sign', async () => {
    const baseUrl = system.baseUrl.replace('127.0.0.1', 'docs.test')
    const page = await open('/docs', {}, baseUrl)
    await page.getByText('This page was loaded over plain HTTP').waitFor()
    const debuggerPage = await open('/docs/signature', {}, baseUrl)
    await debuggerPage.getByText('This page was loaded over plain HTTP').waitFor()
  })

  test('can be used with the keyboard alone', async () => {
    const page = await open('/docs')
    const tabTo = async (locator: Locator) => {
      for (let count = 0; count < 200 && !(await isFocused(page, locator)); count++) await page.keyboard.press('Tab')
      expect(await isFocused(page, locator)).toBe(true)
    }
    await tabTo(page.getByRole('link', { name: 'Skip to the content' }))
    await page.keyboard.press('Enter')
    await tabTo(page.getByLabel('API key', { exact: true }))
    await page.keyboard.insertText(system.apiKey)
    await tabTo(page.getByLabel('API secret'))
    await page.keyboard.insertText(system.apiSecret)
    await page.keyboard.press('Enter')
    const link = page.getByRole('link', { name: 'Create a transfer between' })
    await link.waitFor()
    await tabTo(link)
    await page.keyboard.press('Enter')
    const form = operation(page, 'Create a transfer order')
    const send = form.getByRole('button', { name: 'Send' })
    await tabTo(send)
    await page.keyboard.press('Enter')
    await form.getByText('200 OK').waitFor()
  })

  test.each(looks)(
    'is accessible and fits a width of $width px, $colorScheme, in every view',
    async ({ width, colorScheme }) => {
      const page = await open('/docs', { colorScheme, viewport: { width, height: 900 } })
      await enterKey(page)
      const form = operation(page, 'Create a transfer order')
      await send(form)
      const refused = operation(page, 'Create a hold')
      await refused.getByLabel('amount').fill('x')
      await refused.getByRole('button', { name: 'Send' }).click()
      await refused.getByText('400 Bad Request').waitFor()
      await unfold(page, '#createTransfer')
      // The other operations have the same parts, and the next test has them.
      await expectAccessible(page, axeOf(page).exclude('article:not(#createTransfer, #createHold)'))
    },
  )

  test('is accessible before a key is entered, and with every part unfolded', async () => {
    const page = await open('/docs', { viewport: { width: 390, height: 900 } })
    await unfold(page, 'body')
    // The tests above have all colors. Here they would take most of the time.
    await expectAccessible(page, axeOf(page).disableRules('color-contrast'))
  })
})

describe('pages of text', () => {
  test('a reader searches for an error, reads what to do, and goes on to the operation', async () => {
    const page = await open('/docs/guides')
    await page.getByRole('link', { name: 'Refund a customer' }).first().click()
    await page.getByRole('heading', { name: 'Refund a customer' }).waitFor()
    await page.keyboard.press('/')
    const search = page.getByRole('combobox', { name: 'Search the documentation' })
    await search.fill('t002')
    await page.getByRole('option', { name: 'T002 INSUFFICIENT_BALANCE' }).click()
    await page.waitForURL(`${system.baseUrl}/docs/errors/T002`)
    await page.getByRole('link', { name: 'Create a hold' }).click()
    await page.waitForURL(`${system.baseUrl}/docs#createHold`)
  })

  test('the commands of a session are copied without prompts and output', async () => {
    const page = await open('/docs/guides', { permissions: ['clipboard-read', 'clipboard-write'] })
    const block = page.locator('.code').filter({ hasText: 'export PATH' })
    await block.getByRole('button', { name: 'Copy' }).click()
    await block.getByRole('button', { name: 'Copied' }).waitFor()
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe('export PATH="$PWD/node_modules/.bin:$PATH"\n')
  })

  test.each([
    ['/docs/guides/events.md', 'text/markdown', '# Events'],
    ['/docs/errors/T002.md', 'text/markdown', '# T002 INSUFFICIENT_BALANCE'],
    ['/docs/api.md', 'text/markdown', '# API reference'],
    ['/llms.txt', 'text/plain', '# Workspace Wallet and Transfer API'],
  ])('machines read %s', async (path, type, beginning) => {
    const response = await fetch(system.baseUrl + path)
    expect([response.status, response.headers.get('content-type')]).toEqual([200, `${type}; charset=utf-8`])
    expect(await response.text()).toMatch(new RegExp(`^${beginning}\n`))
  })

  test.each(looks)('are accessible and fit a width of $width px, $colorScheme', async ({ width, colorScheme }) => {
    const page = await open('/docs/guides/webhooks', { colorScheme, viewport: { width, height: 900 } })
    await expectAccessible(page)
    for (const path of ['/docs/errors', '/docs/errors/T002', '/docs/changelog']) {
      await page.goto(system.baseUrl + path)
      await expectAccessible(page)
    }
  })
})

describe('the signature debugger', () => {
  type Sent = { message: string; signature: string; curl: string }

  /** A request of a client that signs something else than it sends. */
  async function clientRequest(change: (message: string) => string = message => message): Promise<Sent> {
    const target = `${createPath}?dry=1`
    const body = '{"amount":"1.00"}'
    const { 'X-Timestamp': timestamp, 'X-Nonce': nonce } = await signedHeaders(system, { method: 'POST', target, body })
    const parts = { method: 'POST', path: createPath, timestamp, nonce, bodyHash: await bodyHash(body) }
    const message = change(canonicalMessage(parts))
    const signature = await sign(system.apiSecret, message)
    const headers = { 'X-Api-Key': system.apiKey, 'X-Timestamp': timestamp, 'X-Nonce': nonce, 'X-Signature': signature }
    const flags = Object.entries(headers).map(([name, value]) => ` \\\n  -H '${name}: ${value}'`)
    return { message, signature, curl: `curl -sS '${system.baseUrl}${target}'${flags.join('')} --data-raw '${body}'` }
  }

  async function openWith({ curl }: Sent, options?: BrowserContextOptions, secret = system.apiSecret): Promise<Page> {
    const page = await open('/docs/signature', options)
    await page.getByLabel('Curl command or HTTP request').fill(curl)
    await page.getByLabel('API secret').fill(secret)
    return page
  }

  test('computes the signature stage by stage from a curl command', async () => {
    const sent = await clientRequest()
    const page = await openWith(sent)
    await page.getByText('The signature is correct.').waitFor()
    const [hash, message, signature] = await page.locator('#stages pre').allTextContents()
    expect(hash).toBe(await bodyHash('{"amount":"1.00"}'))
    expect(message!.replaceAll('↵', '')).toBe(sent.message)
    expect(message!.match(/↵/g)).toHaveLength(4)
    expect(signature).toBe(sent.signature)
  })

  test('names the usual mistakes', async () => {
    const page = await openWith(await clientRequest(message => message.replace(createPath, `${createPath}?dry=1`)))
    const verdict = page.locator('#verdict')
    await verdict.getByText('You signed the query string.').waitFor()
    const trailing = await clientRequest(message => `${message}\n`)
    await page.getByLabel('Curl command or HTTP request').fill(trailing.curl)
    await verdict.getByText('You signed a newline at the end of the message.').waitFor()
    const hex = await clientRequest()
    await page.getByLabel('Curl command or HTTP request').fill(hex.curl)
    await page.getByLabel('X-Signature').fill(Buffer.from(hex.signature, 'base64').toString('hex'))
    await verdict.getByText('in hexadecimal').waitFor()
    await expect(page.locator('.mistakes .found').count()).resolves.toBe(1)
  })

  test('finds the mistake in a signature that was made with another secret than the one of the key', async () => {
    const sent = await clientRequest()
    const page = await openWith(sent, {}, 'another-secret')
    await page.getByText('None of the usual mistakes explains it.').waitFor()
    await page.getByText('What your client computed on the way').click()
    await page.getByLabel('Your canonical message').fill(sent.message)
    await page.getByText('so your client used another secret').waitFor()
  })

  test('shows which part of the canonical message differs, to the character', async () => {
    const sent = await clientRequest(message => message.replace('/command/', '/Command/').replace('POST', 'PUT'))
    const page = await openWith(sent)
    await page.getByText('What your client computed on the way').click()
    await page.getByLabel('Your canonical message').fill(sent.message)
    await page.getByText('Line 2, path: different').waitFor()
    expect(await page.locator('#stages mark.expected').first().textContent()).toBe('OS')
    expect(await page.locator('#stages mark.other').allTextContents()).toEqual(expect.arrayContaining(['U', 'C']))
    await page.getByText('Line 3, timestamp: equal').waitFor()
  })

  test('says what it cannot know from what was pasted', async () => {
    const page = await open('/docs/signature')
    const pasted = page.getByLabel('Curl command or HTTP request')
    const problems = page.locator('#pasted-problems')
    await pasted.fill('X-Nonce: 1')
    await problems.getByText('neither a curl command nor an HTTP request').waitFor()
    await pasted.fill('curl http://h/p -d @order.json -H "X-Nonce: $nonce" -H "X-Timestamp: $time"')
    await problems.getByText('the content of order.json').waitFor()
    await problems.getByText('$nonce and $time').waitFor()
    expect(await page.getByLabel('Body', { exact: true }).inputValue()).toBe('')
    await pasted.fill('curl http://h/p')
    await problems.locator(':scope:empty').waitFor({ state: 'attached' })
    await pasted.fill('')
    await problems.locator(':scope:empty').waitFor({ state: 'attached' })
  })

  test('works offline, and keeps the secret to itself', async () => {
    const sent = await clientRequest()
    const page = await open('/docs/signature')
    await page.context().setOffline(true)
    const { requests } = browser.watched[0]!
    const before = requests.length
    await page.getByLabel('Curl command or HTTP request').fill(sent.curl)
    await page.getByLabel('API secret').fill(system.apiSecret)
    await page.getByText('The signature is correct.').waitFor()
    expect(requests.slice(before).filter(url => !url.endsWith('/icon.svg'))).toEqual([])
    const kept = await page.evaluate(everythingKept)
    expect(kept).not.toContain(system.apiSecret)
  })

  test.each(looks)(
    'is accessible and fits a width of $width px, $colorScheme, in every view',
    async ({ width, colorScheme }) => {
      const options = { colorScheme, viewport: { width, height: 900 } }
      const sent = await clientRequest(message => message.toLowerCase())
      const page = await openWith(sent, options)
      await page.getByText('The signature is wrong.').waitFor()
      await unfold(page, 'form')
      await page.getByLabel('Your canonical message').fill(sent.message)
      await page.getByLabel('Your body hash').fill('e3b0')
      await page.getByText('Line 1, method: different').waitFor()
      await expectAccessible(page)
    },
  )
})

describe('serving', () => {
  const paths = [
    ...['/docs', '/docs/', '/docs/signature', '/docs/signature/', '/docs/assets/docs.css', '/docs/assets/theme.js'],
    ...['/docs/guides', '/docs/guides/events', '/docs/guides/events.md', '/docs/errors/T002', '/llms.txt'],
  ]

  test('every answer has the headers that keep the pages to themselves', async () => {
    for (const path of [...paths, '/docs/assets/reference.js']) {
      const response = await fetch(system.baseUrl + path)
      expect(response.status, path).toBe(200)
      expect(Object.fromEntries(response.headers)).toMatchObject({
        'content-security-policy': expect.stringMatching(/^default-src 'none';.*frame-ancestors 'none'/),
        'cross-origin-opener-policy': 'same-origin',
        'permissions-policy': expect.stringContaining('camera=()'),
        'referrer-policy': 'no-referrer',
        'x-content-type-options': 'nosniff',
      })
      expect(response.headers.get('content-security-policy')).not.toMatch(/unsafe|https?:|\*/)
    }
  })

  test('a browser that opens the base URL is sent to /docs; other clients get S004', async () => {
    const page = await open('/')
    expect(page.url()).toBe(`${system.baseUrl}/docs`)
    const get = (headers: Record<string, string>, method = 'GET', url = system.baseUrl) =>
      fetch(url, { method, headers, redirect: 'manual' })
    const html = { Accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' }
    const sent = await get(html)
    expect([sent.status, sent.headers.get('location'), sent.headers.get('vary')]).toEqual([302, '/docs', 'Accept'])
    expect(sent.headers.get('x-request-id')).toMatch(/^req_/)
    expect((await get(html, 'HEAD')).status).toBe(302)
    const { url: withoutDocs } = await system.startGateway({ DOCS: 'off' })
    for (const response of await Promise.all([
      ...['*/*', 'application/json', 'application/json, text/html;q=0.5', '', 'none'].map(Accept => get({ Accept })),
      // It is not parsed.
      get({ Accept: `text/html${',text/html'.repeat(200)}` }),
      get(html, 'POST'),
      get(html, 'GET', `${system.baseUrl}/wallets`),
      get(html, 'GET', withoutDocs),
    ]))
      expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([404, 'S004'])
  })

  test('unknown paths below /docs and other methods get S004', async () => {
    for (const [method, path] of [
      ['GET', `/docs/${randomUUID()}`],
      ['GET', '/docs/assets/../../openapi'],
      ['GET', '/docs/assets/signing.ts'],
      ['POST', '/docs'],
    ] as const) {
      const response = await fetch(system.baseUrl + path, { method })
      expect([response.status, ((await response.json()) as { code: string }).code], path).toEqual([404, 'S004'])
    }
  })

  test('the sentence for an unknown path names /docs while it is served', async () => {
    const detailOf = async (url: string) => {
      const response = await fetch(url, { headers: { 'Accept-Language': 'en' } })
      return ((await response.json()) as { detail: string }).detail
    }
    expect(await detailOf(system.baseUrl)).toContain('and /docs describes them')
    const { url } = await system.startGateway({ DOCS: 'off' })
    expect(await detailOf(url)).not.toContain('/docs')
  })

  test('DOCS=off: every path gets S004', async () => {
    const { url } = await system.startGateway({ DOCS: 'off' })
    for (const path of [...paths, '/openapi.json']) {
      const response = await fetch(url + path)
      expect([response.status, ((await response.json()) as { code: string }).code], path).toEqual([404, 'S004'])
    }
  })
})
