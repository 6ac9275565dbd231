import { constants, setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import type { VerifyEvent } from '@workspace-wallet/contract'
import { type Verification, type VerificationEvent, verifyLedger } from './verify.ts'

// The thread that thread.ts starts.

const progressEveryMs = 100
/** Repeats the progress during long statements, so that no timeout of the connection to the caller ends the stream. */
const keepAliveMs = 5_000

let progress: VerifyEvent = { kind: 'progress', flows: 0, totalFlows: 0 }
let sentAt = 0

function send(event: VerificationEvent): void {
  sentAt = performance.now()
  parentPort!.postMessage(event)
}

// On Linux, this is the priority of the calling thread; elsewhere, that of the process. With the lowest one, the thread would get less than
// a hundredth of a busy processor, and might never come to an end; with this one, it gets a tenth.
if (process.platform === 'linux') setPriority(constants.priority.PRIORITY_BELOW_NORMAL)

const keepAlive = setInterval(() => send(progress), keepAliveMs)
try {
  let result: VerifyEvent | undefined
  for await (const event of verifyLedger(workerData as Verification)) {
    if (event.kind === 'result') result = event
    else if (event.kind === 'progress') progress = event
    else send(event)
    if (event.kind === 'progress' && performance.now() - sentAt >= progressEveryMs) send(event)
  }
  // Sent after the connection is closed, because the receiver terminates the thread.
  send(result!)
} finally {
  clearInterval(keepAlive)
}
