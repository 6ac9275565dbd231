import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { consoleFolder } from '../../gateway/console/build/folder.ts'
import { Chromium } from './chromium.ts'
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

const builder = fileURLToPath(new URL('../../gateway/console/build/main.ts', import.meta.url))

/** The folder of the built console. */
export async function buildConsole(): Promise<string> {
  await promisify(execFile)(process.execPath, [builder], { env: { ...process.env, NODE_ENV: 'production' } })
  return consoleFolder()
}

export async function startConsole(options: SystemOptions = {}): Promise<ConsoleTest> {
  const [system, browser] = await Promise.all([
    buildConsole().then(folder =>
      startSystem({ ...options, gatewayEnvironment: { ...options.gatewayEnvironment, CONSOLE_DIR: folder } }),
    ),
    Chromium.start(),
  ])
  const origin = system.gateways[0]!.internalUrl

  const open = (path = '', options: BrowserContextOptions = {}) => browser.open(`${origin}/console${path}`, options)

  async function signIn(path = '', { token = system.adminToken, ...options } = {}): Promise<Page> {
    const page = await open(path, options)
    await page.getByRole('checkbox').check()
    await enterToken(page, token)
    await page.locator('nav[aria-label]').first().waitFor()
    return page
  }

  async function stop(): Promise<void> {
    await browser.stop()
    await system.stop()
  }
  return { system, origin, open, signIn, closePages: () => browser.closePages(), stop }
}

export async function enterToken(page: Page, token: string): Promise<void> {
  await page.getByLabel(/^(Access token|访问令牌)/).fill(token)
  await page.getByRole('button', { name: /^(Sign in|登录)$/ }).click()
}

export const dialog = (page: Page) => page.getByRole('dialog')

/** What a dialog of `act` gives as the reason. */
export const givenReason = 'a test'

/** Opens a dialog, fills it in, gives a reason if it asks for one, and submits it with a double click. */
export async function act(page: Page, button: string, fields: Record<string, string> = {}): Promise<void> {
  await page.locator('main').getByRole('button', { name: button, exact: true }).first().click()
  await dialog(page).waitFor()
  for (const [label, value] of Object.entries(fields)) {
    const field = dialog(page).getByLabel(label)
    const isSelect = (await field.evaluate(element => element.tagName)) === 'SELECT'
    await (isSelect ? field.selectOption(value) : field.fill(value))
  }
  const reason = dialog(page).getByLabel('Reason')
  if (await reason.isVisible()) await reason.fill(givenReason)
  await dialog(page).getByRole('button', { name: button, exact: true }).dblclick()
}
