import type { Credentials } from './signing.ts'

export type WalletClientOptions = Credentials & {
  /** Where the service is, such as `https://wallet.example.com`: scheme, host and port, without a path. */
  baseUrl: string
  /** The language of `detail` in errors, as a language tag. Default: `en-US`. */
  locale?: string | undefined
  /**
   * How long one attempt may take, in milliseconds. Default: 15,000. The service itself gives up on a command after about
   * 10 seconds (S003).
   */
  timeoutMs?: number | undefined
  /** How often a request that failed is sent again. Default: 4, within about 4 seconds if the service asks for no pause. */
  maxRetries?: number | undefined
  /** Default: the global fetch. */
  fetch?: typeof fetch | undefined
  /** The current time in milliseconds since the Unix epoch. Default: `Date.now`. */
  now?: (() => number) | undefined
}

/** Valid options with their defaults. */
export type Settings = {
  credentials: Credentials
  /** Scheme, host and port. */
  origin: string
  locale: string
  timeoutMs: number
  maxRetries: number
  fetch: typeof fetch
  now: () => number
}

/** @throws TypeError that says which option is invalid, and how to correct it. It never contains the secret. */
export function readOptions(options: WalletClientOptions): Settings {
  const { baseUrl, apiKey, apiSecret, locale = 'en-US', timeoutMs = 15_000, maxRetries = 4 } = options
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : null
  if (!url || !/^https?:$/.test(url.protocol) || `${url.origin}/` !== url.href)
    throw new TypeError(`baseUrl must be a URL without a path, such as https://wallet.example.com, not "${baseUrl}"`)
  for (const [name, text] of Object.entries({ apiKey, apiSecret, locale })) {
    if (text === '') throw new TypeError(`${name} is empty: check where it comes from`)
    if (typeof text !== 'string' || !/^[!-~]+$/.test(text))
      throw new TypeError(`${name} must be text without spaces and line breaks: check where it comes from`)
  }
  if (!(timeoutMs > 0 && timeoutMs <= maxTimerMs))
    throw new TypeError(`timeoutMs must be between 1 and ${maxTimerMs}, not ${timeoutMs}`)
  if (!(maxRetries >= 0)) throw new TypeError(`maxRetries must be 0 or more, not ${maxRetries}`)
  return {
    credentials: { apiKey, apiSecret },
    origin: url.origin,
    locale,
    timeoutMs,
    maxRetries,
    fetch: options.fetch ?? globalThis.fetch,
    now: options.now ?? Date.now,
  }
}

/** The longest delay of a timer. */
const maxTimerMs = 2_147_483_647
