/** Aborts with the first SIGINT or SIGTERM. */
export function abortOnInterrupt(): AbortSignal {
  const interrupted = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => interrupted.abort(new Error('Interrupted.')))
  return interrupted.signal
}
