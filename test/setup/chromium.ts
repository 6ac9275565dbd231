import { AxeBuilder } from '@axe-core/playwright'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { expect } from 'vitest'
import { findProgram, type WantedProgram } from '../../cli/processes/programs.ts'

/** A time-out that only ends what hangs. */
const hangMs = 150_000

/** What a page requested, and what the browser complained of. */
type Watched = { page: Page; origin: string; requests: string[]; problems: string[] }

/** What the browser writes about responses that a test wants, and about a host that is no secure context. */
const expected = /^Failed to load resource|^The Cross-Origin-Opener-Policy header has been ignored/

/** Chromium without its user interface: the tests take 40 % less CPU time than with it. */
export const chromiumProgram: WantedProgram = {
  names: ['chromium-headless-shell', 'chromium'],
  aptPackage: 'chromium-headless-shell',
}

/** Debian's Chromium, which makes no request of its own. Every page is watched. */
export class Chromium {
  /** The pages that are open, in the order in which they were opened. */
  readonly watched: Watched[] = []
  readonly #browser: Browser

  private constructor(browser: Browser) {
    this.#browser = browser
  }

  static async start(args: readonly string[] = []): Promise<Chromium> {
    const browser = await chromium.launch({
      executablePath: await findProgram(chromiumProgram.names, chromiumProgram.aptPackage),
      timeout: hangMs,
      args: [
        '--no-sandbox',
        '--disable-gpu',
        '--disable-quic',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
        ...args,
      ],
    })
    return new Chromium(browser)
  }

  /** Opens a page in a context of its own. */
  async open(url: string, options: BrowserContextOptions = {}): Promise<Page> {
    const defaults = { viewport: { width: 1280, height: 900 }, locale: 'en-US' }
    const context = await this.#browser.newContext({ ...defaults, ...options })
    context.setDefaultTimeout(hangMs)
    const page = await context.newPage()
    const watch: Watched = { page, origin: new URL(url).origin, requests: [], problems: [] }
    this.watched.push(watch)
    page.on('request', request => watch.requests.push(request.url()))
    page.on('pageerror', error => watch.problems.push(String(error)))
    page.on('console', message => {
      const isProblem = ['error', 'warning'].includes(message.type()) && !expected.test(message.text())
      if (isProblem) watch.problems.push(message.text())
    })
    await page.goto(url)
    return page
  }

  /** Closes all pages, and checks that they requested nothing from elsewhere and that the browser complained of nothing. */
  async closePages(): Promise<void> {
    for (const { page, origin, requests, problems } of this.watched.splice(0)) {
      await page.context().close()
      expect(requests.length).toBeGreaterThan(1)
      expect(requests.filter(url => !url.startsWith('data:') && new URL(url).origin !== origin)).toEqual([])
      expect(problems).toEqual([])
    }
  }

  stop(): Promise<void> {
    return this.#browser.close()
  }
}

export const axeOf = (page: Page) => new AxeBuilder({ page }).options({ resultTypes: ['violations'] })

/** No violation of accessibility, and nothing wider than the window. */
export async function expectAccessible(page: Page, axe = axeOf(page)): Promise<void> {
  const { violations } = await axe.analyze()
  expect(violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)])).toEqual([])
  expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0)
}
