import { on } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { VerifyEvent } from '@workspace-wallet/contract'
import type { Verification } from './verify.ts'

/** About three times what a verification needs. */
const heapLimitMb = 256

/**
 * Runs a verification in a separate thread: it computes for minutes, and must not delay the thread that posts transfers.
 * The thread, its connection and its current statement end when the caller stops iterating or the signal aborts.
 */
export async function* verifyInThread(
  verification: Verification,
  signal: AbortSignal | undefined,
): AsyncGenerator<VerifyEvent, void> {
  signal?.throwIfAborted()
  const thread = new Worker(new URL('./worker.ts', import.meta.url), {
    workerData: verification,
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: heapLimitMb },
  })
  // `on` listens only while it iterates. An error while the thread ends would otherwise stop core.
  thread.on('error', () => {})
  let result: VerifyEvent | undefined
  try {
    const messages = on(thread, 'message', { ...(signal && { signal }), close: ['exit'] })
    for await (const [event] of messages as AsyncIterable<[VerifyEvent]>) {
      if (event.kind === 'result') {
        result = event
        break
      }
      yield event
    }
  } finally {
    await thread.terminate()
  }
  if (!result) throw new Error('the verification thread ended without a result')
  yield result
}
