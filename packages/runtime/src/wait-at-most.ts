/** Waits until a promise is settled, for `ms` at most. @throws what it is rejected with by then */
export async function waitAtMost(ms: number, awaited: Promise<unknown>): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  try {
    await Promise.race([awaited, late])
  } finally {
    clearTimeout(timer)
  }
}
