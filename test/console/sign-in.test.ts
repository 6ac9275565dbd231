import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { expectAccessible } from '../setup/chromium.ts'
import { type ConsoleTest, enterToken, startConsole } from '../setup/console.ts'

/** Signing in, and what surrounds every page. */

let console: ConsoleTest
beforeAll(async () => {
  console = await startConsole()
})
afterAll(() => console.stop())
afterEach(() => console.closePages())

/** Where a page could keep what it was told. */
const everythingKept = `(async () => JSON.stringify([document.documentElement.outerHTML, { ...localStorage },
  { ...sessionStorage }, document.cookie, await indexedDB.databases(), await caches.keys(), history.state, location.href]))()`

test('an operator signs in with a token, which stays in memory and is forgotten on reload', async () => {
  const page = await console.open('/audit')
  await enterToken(page, console.system.adminToken)
  await page.getByRole('heading', { name: 'Audit' }).waitFor()
  expect(await page.evaluate(everythingKept)).not.toContain(console.system.adminToken)
  await page.reload()
  await page.getByLabel('Access token').waitFor()
})

test('on request, the token is kept for the session of the tab, and signing out removes it', async () => {
  const page = await console.open('/audit')
  await page.getByLabel('Keep me signed in until I close this tab').check()
  await enterToken(page, console.system.adminToken)
  await page.getByRole('heading', { name: 'Audit' }).waitFor()
  await page.reload()
  await page.getByRole('heading', { name: 'Audit' }).waitFor()
  await page.getByRole('button', { name: 'Settings' }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await page.getByLabel('Access token').waitFor()
  expect(await page.evaluate(everythingKept)).not.toContain(console.system.adminToken)
})

test('an unknown token and one of another role are refused in words, with the ID of the request', async () => {
  const page = await console.open()
  await enterToken(page, 'x'.repeat(43))
  await page.getByText('The service does not know this token.').waitFor()
  await page.getByText(/Request ID: console-/).waitFor()
  await enterToken(page, console.system.serviceToken)
  await page.getByText('This token may not do this: a token of the role service').waitFor()
  await expectAccessible(page)
})

test.each([
  { colorScheme: 'light', viewport: { width: 1280, height: 900 } },
  { colorScheme: 'dark', viewport: { width: 1280, height: 900 } },
  { colorScheme: 'light', viewport: { width: 768, height: 900 } },
  { colorScheme: 'dark', viewport: { width: 390, height: 800 } },
] as const)('the frame of the pages is accessible: %j', async options => {
  const page = await console.open('/ledger', options)
  await expectAccessible(page)
  await enterToken(page, console.system.adminToken)
  await page.getByRole('heading', { name: 'Ledger' }).waitFor()
  await page.getByText('No workspace is halted.').waitFor()
  await expectAccessible(page)
})

test('the operator chooses language, theme and the zone of times, and a reload keeps the choice', async () => {
  const page = await console.signIn('/audit', { timezoneId: 'Asia/Tokyo', colorScheme: 'light' })
  const time = page.locator('time').first()
  const [local, utc] = [await time.textContent(), await time.getAttribute('title')]
  expect(utc).toMatch(/Z$/)
  await page.getByRole('button', { name: 'Settings' }).click()
  await page.getByRole('menuitem', { name: 'Show times in UTC' }).click()
  expect(await time.textContent()).not.toBe(local)
  expect(await time.textContent()).toContain('UTC')
  await page.getByRole('button', { name: 'Use the dark theme' }).click()
  await page.getByRole('button', { name: 'Settings' }).click()
  await page.getByRole('menuitem', { name: '中文' }).click()
  await page.getByRole('heading', { name: '审计' }).waitFor()
  await page.reload()
  await page.getByRole('heading', { name: '审计' }).waitFor()
  expect(await page.evaluate('document.documentElement.lang')).toBe('zh-CN')
  expect(await page.evaluate('document.documentElement.dataset.mantineColorScheme')).toBe('dark')
  expect(await time.textContent()).toContain('UTC')
})

test('everything is reached with the keyboard, beginning with a link to the content', async () => {
  const page = await console.signIn('/audit')
  await page.locator('body').press('/')
  expect(await page.evaluate('document.activeElement.type')).toBe('search')
  await page.getByRole('button', { name: 'Settings' }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await page.getByLabel('Access token').fill(console.system.adminToken)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Audit' }).waitFor()
  await page.evaluate('document.activeElement.blur()')
  await page.keyboard.press('Tab')
  expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to the content')
  await page.keyboard.press('Enter')
  expect(await page.evaluate('document.activeElement.id')).toBe('content')
})

test('the first load is small, comes from this host, and its policy allows no other script, frame or cookie', async () => {
  const sizes: number[] = []
  const page = await console.open('')
  const paths = await page.evaluate<string[]>(
    "performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation')).map(each => each.name)",
  )
  for (const path of new Set(paths)) {
    const response = await fetch(path)
    sizes.push(gzipSync(await response.bytes()).length)
    expect(response.headers.getSetCookie()).toEqual([])
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
  }
  expect(sizes.length).toBeGreaterThan(2)
  expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan(400_000)

  const { headers } = await fetch(`${console.origin}/console`)
  const policy = headers.get('content-security-policy')!
  expect(policy).toContain("script-src 'self';")
  expect(policy).toContain("frame-ancestors 'none'")
  expect(policy).not.toContain('unsafe')
  expect(headers.get('cache-control')).toBe('no-store')
  const [script] = paths.filter(path => path.endsWith('.js'))
  expect((await fetch(script!)).headers.get('cache-control')).toContain('immutable')
})

test('paths of pages answer with the page, others below it with 404, and nothing can be posted to it', async () => {
  const get = (path: string) => fetch(`${console.origin}${path}`)
  expect((await get('/console/wallets?workspace=wsp_1')).headers.get('content-type')).toContain('text/html')
  expect((await get('/console/assets/missing.js')).status).toBe(404)
  expect((await get('/console/../secrets.json')).status).toBe(404)
  expect((await get('/consoles')).status).toBe(404)
  expect((await fetch(`${console.origin}/console`, { method: 'POST' })).status).toBe(404)
})
