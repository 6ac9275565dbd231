import { parentPort, workerData } from 'node:worker_threads'
import type { VerifyEvent } from '@workspace-wallet/contract'
import { type Verification, verifyLedger } from './verify.ts'

/** The thread of a verification: see verify-thread.ts. */
const progressEveryMs = 100
/** Says that it is alive while a statement runs long: whoever waits for bytes must not give up. */
const aliveEveryMs = 5_000

let progress: VerifyEvent = { kind: 'progress', flows: 0, totalFlows: 0 }
let sentAt = 0

function send(event: VerifyEvent): void {
  sentAt = performance.now()
  parentPort!.postMessage(event)
}

const alive = setInterval(() => send(progress), aliveEveryMs)
try {
  let result: VerifyEvent | undefined
  for await (const event of verifyLedger(workerData as Verification)) {
    if (event.kind === 'result') result = event
    else progress = event
    if (event.kind === 'progress' && performance.now() - sentAt >= progressEveryMs) send(event)
  }
  // Only now that its connection is closed: whoever gets the result ends the thread.
  send(result!)
} finally {
  clearInterval(alive)
}
