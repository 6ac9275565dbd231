/** How long everything takes. */
export type Settings = {
  /** Those that count; one more goes before them to warm up. */
  rounds: number
  /** Of each contender in each round, and for how long it is measured. */
  warmUpMs: number
  measureMs: number
  /** Orders in the tables whose lists are read; the targets are about the last. */
  listSizes: number[]
  /** Orders of each workspace that asks for expensive lists. */
  neighbourRows: number
  /** Under load: until the first look at the memory, and from there to the last one. */
  memoryWarmUpMs: number
  memoryMs: number
  /** Between two looks there are transfers for so long, then reads. */
  memoryStretchMs: number
}

export const fullSettings: Settings = {
  rounds: 3,
  warmUpMs: 1_000,
  measureMs: 3_000,
  listSizes: [10_000, 100_000, 1_000_000],
  neighbourRows: 500_000,
  memoryWarmUpMs: 72_000,
  memoryMs: 120_000,
  memoryStretchMs: 3_000,
}

/** To see that everything works. The figures mean nothing. */
export const quickSettings: Settings = {
  rounds: 1,
  warmUpMs: 0,
  measureMs: 1_000,
  listSizes: [100, 1_000, 10_000],
  neighbourRows: 5_000,
  memoryWarmUpMs: 400,
  memoryMs: 400,
  memoryStretchMs: 200,
}
