import { on } from 'node:events'
import { getCompileCacheDir } from 'node:module'
import { dirname } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { Worker } from 'node:worker_threads'
import { BaselineChanged } from './baseline.ts'
import type { Verification, VerificationEvent } from './verify.ts'

/** About three times what a verification needs. */
const defaultHeapLimitMb = 256

/** A verification was stopped because it needed more memory than it may have. */
export class VerificationOutOfMemory extends Error {
  constructor(heapLimitMb: number) {
    super(
      `the verification needed more than ${heapLimitMb} MB of memory and was stopped without a result: some rows, which somebody may have written outside the service, do not fit`,
    )
  }
}

/**
 * Each thread strips the types of its modules with WebAssembly, unless Node's compile cache has them. V8 13.6 may abort the
 * process ("Check failed: jit_page.has_value()") when it compiles a frequent call from there to JavaScript while another
 * thread ends. This number of calls is never reached, so that it does not.
 */
setFlagsFromString('--wasm-wrapper-tiering-budget=1000000000')

/**
 * Runs a verification in a separate thread of low priority: it computes for minutes, and must not delay the thread that posts transfers.
 * The thread, its connection and its current statement end when the caller stops iterating or the signal aborts.
 *
 * @throws VerificationOutOfMemory
 */
export async function* verifyInThread(
  verification: Verification,
  signal: AbortSignal | undefined,
  heapLimitMb = defaultHeapLimitMb,
): AsyncGenerator<VerificationEvent, void> {
  signal?.throwIfAborted()
  // Node adds a directory for its version.
  const compileCache = getCompileCacheDir()
  const thread = new Worker(new URL('./worker.ts', import.meta.url), {
    workerData: verification,
    env: compileCache ? { NODE_COMPILE_CACHE: dirname(compileCache) } : {},
    resourceLimits: { maxOldGenerationSizeMb: heapLimitMb },
  })
  // `on` listens only while it iterates. An error while the thread ends would otherwise stop core.
  thread.on('error', () => {})
  let result: VerificationEvent | undefined
  try {
    const messages = on(thread, 'message', { ...(signal && { signal }), close: ['exit'] })
    for await (const [event] of messages as AsyncIterable<[VerificationEvent]>) {
      if (event.kind === 'result') {
        result = event
        break
      }
      yield event
    }
  } catch (error) {
    throw isOutOfMemory(error) ? new VerificationOutOfMemory(heapLimitMb) : error
  } finally {
    await thread.terminate()
  }
  if (!result) throw new Error('the verification thread ended without a result')
  yield result
}

function isOutOfMemory(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === 'ERR_WORKER_OUT_OF_MEMORY'
}

/** Whether an incremental verification has not begun, because where the last one ended was changed. The thread has cloned the error. */
export function isBaselineChanged(error: unknown): boolean {
  return error instanceof Error && error.message === new BaselineChanged().message
}
