/** npm passes a Ctrl-C on that the terminal has already sent to this process: within this time it is the same one. */
const repeatedSignalMs = 500

/**
 * Listens for SIGINT, SIGTERM and SIGHUP, and for the exit of the parent process: a killed npm sends no signal.
 *
 * @param onInterrupt called once, with the first of them
 * @param onRepeat called with every later signal
 * @returns a signal that is aborted with the first of them
 */
export function listenForInterrupt(onInterrupt: () => void, onRepeat: () => void): AbortSignal {
  const interrupted = new AbortController()
  let interruptedAt = 0

  const interrupt = () => {
    if (interrupted.signal.aborted) {
      if (Date.now() - interruptedAt > repeatedSignalMs) onRepeat()
      return
    }
    interruptedAt = Date.now()
    onInterrupt()
    interrupted.abort()
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, interrupt)

  const parent = process.ppid
  setInterval(() => {
    if (process.ppid !== parent && !interrupted.signal.aborted) interrupt()
  }, 500).unref()
  // Output that nobody reads any more must not end this process.
  process.stdout.on('error', () => {})
  process.stderr.on('error', () => {})
  return interrupted.signal
}
