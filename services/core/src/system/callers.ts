import type { SystemStatus } from '@workspace-wallet/contract'

/** When each program last called this core, by the name and role of its service token. Their number is that of the tokens. */
export class Callers {
  readonly #lastCalls = new Map<string, SystemStatus['callers'][number]>()

  called({ name, role }: { name: string; role: string }): void {
    const caller = this.#lastCalls.get(`${role}:${name}`)
    if (caller) caller.lastCallAt = new Date()
    else this.#lastCalls.set(`${role}:${name}`, { name, role, lastCallAt: new Date() })
  }

  /** In the order of roles and names. */
  list(): SystemStatus['callers'] {
    return [...this.#lastCalls].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, caller]) => ({ ...caller }))
  }
}
