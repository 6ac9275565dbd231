/** How long what is still open may take to close. */
const closingMs = 5_000

/**
 * Ends this program as soon as nothing keeps its event loop running: close everything before. It does not call
 * `process.exit()`, which can hang for ever: it waits for V8's compiler threads, and these can wait for a garbage collection
 * that only the main thread can make (nodejs/node issue 54918). At the natural end of a program, Node ends such waits first.
 *
 * What is still open after five seconds is named on standard error, and the program is ended by `process.exit()`. If that
 * hangs, whoever started the program kills it: npm start, the container engine, the set-up of the tests.
 */
export function endProgram(exitCode: number): void {
  process.exitCode = exitCode
  if (process.connected) process.disconnect()
  setTimeout(() => {
    console.error(`still open ${closingMs / 1000} s after the end: ${process.getActiveResourcesInfo().join(', ')}`)
    process.exit()
  }, closingMs).unref()
}
