/** Durations and sizes of a run. */
export type Settings = {
  /** Rounds that count, after one that warms up. */
  rounds: number
  /** For each contender in each round. */
  warmUpMs: number
  measureMs: number
  /** Workspaces whose transfers are compared with one transaction per request, 8 at most. */
  peerWorkspaces: number
  /** The directory with the sources of pgledger; without it, the service is not compared with pgledger. */
  pgledger?: string
  /** PgBouncer 1.21 or newer; without it, the service is not measured behind one. */
  pgbouncer?: string
  /** Batches of each size that the posting part makes in a round. */
  postingBatches: number
  /** Rows of the tables whose lists are read. The targets are for the last size. */
  listSizes: number[]
  /** Transfers that the storage part posts. */
  storageTransfers: number
  /** Orders of each workspace that requests expensive lists. */
  neighbourRows: number
  /** Connections over which twice as many transfers arrive as the service can make. */
  overloadConnections: number
  /** Time under load before the first measurement of memory, and from there to the last one. */
  memoryWarmUpMs: number
  memoryMs: number
  /** Duration of the transfers, and then of the reads, between two measurements of memory. */
  memoryStretchMs: number
}

export const fullSettings: Settings = {
  rounds: 5,
  warmUpMs: 1_000,
  measureMs: 3_000,
  peerWorkspaces: 8,
  postingBatches: 20,
  listSizes: [10_000, 100_000, 1_000_000],
  storageTransfers: 1_000_000,
  neighbourRows: 500_000,
  overloadConnections: 4_096,
  memoryWarmUpMs: 72_000,
  memoryMs: 120_000,
  memoryStretchMs: 3_000,
}

/** Only checks that everything works. The figures mean nothing. */
export const quickSettings: Settings = {
  rounds: 1,
  warmUpMs: 0,
  measureMs: 200,
  peerWorkspaces: 1,
  postingBatches: 2,
  listSizes: [100, 1_000, 10_000],
  storageTransfers: 2_000,
  neighbourRows: 5_000,
  overloadConnections: 64,
  memoryWarmUpMs: 400,
  memoryMs: 400,
  memoryStretchMs: 200,
}
