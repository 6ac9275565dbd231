import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { AxeBuilder } from '@axe-core/playwright'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { expect } from 'vitest'
import { findProgram } from '../../cli/processes/programs.ts'
import { consoleFolder } from '../../gateway/console/build/folder.ts'
import { type System, type SystemOptions, startSystem } from './system.ts'

/** The console in Chromium, as an operator uses it. */
export type ConsoleTest = {
  system: System
  /** Of the internal listener. */
  origin: string
  /** Opens a path below `/console` in a new context, and watches it. */
  open(path?: string, options?: BrowserContextOptions): Promise<Page>
  /** Opens a path, and signs in with this token: by default that of an operator. Other paths can be opened in the same page. */
  signIn(path?: string, options?: BrowserContextOptions & { token?: string }): Promise<Page>
  /** Closes all pages, and checks what they requested and what the browser complained of. */
  closePages(): Promise<void>
  stop(): Promise<void>
}

/** A time-out that only ends what hangs. */
const hangMs = 60_000

const builder = fileURLToPath(new URL('../../gateway/console/build/main.ts', import.meta.url))

/** The folder of the built console. */
export async function buildConsole(): Promise<string> {
  await promisify(execFile)(process.execPath, [builder], { env: { ...process.env, NODE_ENV: 'production' } })
  return consoleFolder()
}

export async function startConsole(options: SystemOptions = {}): Promise<ConsoleTest> {
  const [system, executablePath] = await Promise.all([
    buildConsole().then(folder =>
      startSystem({ ...options, gatewayEnvironment: { ...options.gatewayEnvironment, CONSOLE_DIR: folder } }),
    ),
    findProgram(['chromium'], 'chromium'),
  ])
  const browser = await launch(executablePath)
  const origin = system.gateways[0]!.internalUrl
  const watched: { page: Page; requests: string[]; problems: string[] }[] = []

  async function open(path = '', options: BrowserContextOptions = {}): Promise<Page> {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, locale: 'en-US', ...options })
    context.setDefaultTimeout(hangMs)
    const page = await context.newPage()
    const watch = { page, requests: [] as string[], problems: [] as string[] }
    watched.push(watch)
    page.on('request', request => watch.requests.push(request.url()))
    page.on('pageerror', error => watch.problems.push(String(error)))
    page.on('console', message => {
      const isExpected = /^Failed to load resource/.test(message.text())
      if (['error', 'warning'].includes(message.type()) && !isExpected) watch.problems.push(message.text())
    })
    await page.goto(`${origin}/console${path}`)
    return page
  }

  async function signIn(path = '', { token = system.adminToken, ...options } = {}): Promise<Page> {
    const page = await open(path, options)
    await page.getByRole('checkbox').check()
    await enterToken(page, token)
    await page.locator('nav[aria-label]').first().waitFor()
    return page
  }

  async function closePages(): Promise<void> {
    for (const { page, requests, problems } of watched.splice(0)) {
      await page.context().close()
      const foreign = requests.filter(url => !url.startsWith('data:') && new URL(url).origin !== origin)
      expect(foreign).toEqual([])
      expect(problems).toEqual([])
    }
  }

  async function stop(): Promise<void> {
    await browser.close()
    await system.stop()
  }
  return { system, origin, open, signIn, closePages, stop }
}

function launch(executablePath: string): Promise<Browser> {
  return chromium.launch({
    executablePath,
    timeout: hangMs,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  })
}

export async function enterToken(page: Page, token: string): Promise<void> {
  await page.getByLabel(/^(Access token|访问令牌)/).fill(token)
  await page.getByRole('button', { name: /^(Sign in|登录)$/ }).click()
}

/** No violation of accessibility, and nothing wider than the window. */
export async function expectAccessible(page: Page): Promise<void> {
  const { violations } = await new AxeBuilder({ page }).options({ resultTypes: ['violations'] }).analyze()
  expect(violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)])).toEqual([])
  expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0)
}
