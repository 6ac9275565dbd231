export type Fault = {
  /** The name under which the report counts it. */
  kind: string
  /** What it does, for the progress lines. */
  what: string
  /** Resolves when the fault ends: the time of recovery starts here. `isOver`: killed processes have been replaced. */
  inject(): Promise<{ isOver: () => Promise<boolean> }>
}
