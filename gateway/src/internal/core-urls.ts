import { wasNeverSent } from '@workspace-wallet/core-client'
import type { SampledLog } from '@workspace-wallet/runtime'

/** How often the health of a core that refused a connection is checked. Until it is healthy, it gets no calls. */
const probeMs = 500

/** The cores that internal calls are passed on to, in turn. */
export class CoreUrls {
  readonly #cores: { readonly url: string; isUnreachable: boolean }[]
  #turn = 0

  constructor(urls: readonly string[]) {
    this.#cores = urls.map(url => ({ url, isUnreachable: false }))
  }

  next(): string {
    this.#turn = (this.#turn + 1) % this.#cores.length
    const rotated = [...this.#cores.slice(this.#turn), ...this.#cores.slice(0, this.#turn)]
    return (rotated.find(core => !core.isUnreachable) ?? rotated[0]!).url
  }

  /** Skips the core with this URL until it answers health checks. */
  async skip(url: string): Promise<void> {
    const core = this.#cores.find(each => url.startsWith(each.url))
    if (!core || core.isUnreachable) return
    core.isUnreachable = true
    while (core.isUnreachable) {
      await new Promise(resolve => setTimeout(resolve, probeMs).unref())
      const answer = await fetch(`${core.url}/healthz`, { signal: AbortSignal.timeout(probeMs) }).catch(() => null)
      core.isUnreachable = !answer?.ok
    }
  }
}

/** Logs that a core did not answer an internal call, and skips it if it was not reached. Returns whether the call may have been executed. */
export function noteNoAnswer(cores: CoreUrls, sampled: SampledLog, url: string, error: Error): boolean {
  const wasSent = !wasNeverSent(error)
  // Whoever reaches the listener can cause it, without a token.
  sampled.write('internal call', {
    level: 'warn',
    fields: { err: error, wasSent },
    message: 'core did not answer an internal call',
    summary: 'core did not answer more internal calls',
  })
  if (!wasSent) void cores.skip(url)
  return wasSent
}
