/** How many API keys one look-up names at most. Each may have 256 addresses. */
export const keysPerLookup = 100

/**
 * What the answers of core to a batch of calls may have at most: pages of 500 events have up to 2 MB, and look-ups of API keys 29,000 values.
 * With the limits of other clients of core, one that was taken over could use up the heap of a small gateway: its text may become six times
 * as long in JSON.
 */
export const answerLimits = { bytes: 4 * 1024 * 1024, values: 65_536 }
