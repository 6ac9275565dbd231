import type { CoreConnection } from './core-connection.ts'

/** Chooses cores in turn, or always the preferred one first. */
export class CoreRotation {
  readonly #cores: readonly CoreConnection[]
  readonly #preferred: CoreConnection | undefined
  #first = 0

  constructor(cores: readonly CoreConnection[], preferred?: CoreConnection) {
    this.#cores = cores
    this.#preferred = preferred
  }

  /**
   * The healthy cores, in the order in which a call tries them: the preferred core first, then the others. Each call starts
   * with the core after the one that the last call started with. Cores that are cooling down come last.
   */
  next(): CoreConnection[] {
    const cores = [...this.#cores.slice(this.#first), ...this.#cores.slice(0, this.#first)]
    this.#first = (this.#first + 1) % this.#cores.length
    return cores.filter(({ isUnhealthy }) => !isUnhealthy).toSorted((a, b) => this.#rank(a) - this.#rank(b))
  }

  get urls(): string[] {
    return this.#cores.map(({ url }) => url)
  }

  /** Whether a call has a core to go to. */
  get hasHealthyCore(): boolean {
    return this.#cores.some(({ isUnhealthy }) => !isUnhealthy)
  }

  #rank(core: CoreConnection): number {
    if (core.isCoolingDown) return 2
    return core === this.#preferred ? 0 : 1
  }
}
