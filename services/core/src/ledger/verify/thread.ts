import { on } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { VerifyEvent } from '@workspace-wallet/contract'
import type { Verification } from './verify.ts'

/** What a verification may use, whatever it reads. It needs about a third of it. */
const heapLimitMb = 256

/**
 * Runs a verification in a thread of its own: it computes for minutes, and the thread that posts transfers must not
 * wait for it. The thread, its connection and the statement it runs end when the caller stops or the signal says so.
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
  // `on` listens only while it iterates. Without a listener, a fault while the thread ends would end core.
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
  if (!result) throw new Error('the thread of a verification ended before it had a result')
  yield result
}
