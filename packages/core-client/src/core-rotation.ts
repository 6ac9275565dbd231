import type { CoreConnection } from './core-connection.ts'

/** Chooses cores in turn. */
export class CoreRotation {
  readonly #cores: readonly CoreConnection[]
  #first = 0

  constructor(cores: readonly CoreConnection[]) {
    this.#cores = cores
  }

  /** The healthy cores in the order to try them, starting one further each time. Cores that are cooling down come last. */
  next(): CoreConnection[] {
    const cores = [...this.#cores.slice(this.#first), ...this.#cores.slice(0, this.#first)]
    this.#first = (this.#first + 1) % this.#cores.length
    return cores
      .filter(({ isUnhealthy }) => !isUnhealthy)
      .toSorted((a, b) => Number(a.isCoolingDown) - Number(b.isCoolingDown))
  }

  /** Whether a call has a core to go to. */
  get hasHealthyCore(): boolean {
    return this.#cores.some(({ isUnhealthy }) => !isUnhealthy)
  }
}
