/** The worker thread of the nonce file. A slow disk delays only requests that need a nonce. */

import { parentPort, workerData } from 'node:worker_threads'
import { errorSummary } from '@workspace-wallet/runtime'
import { type FileAnswer, NonceFile, type NonceFileOptions, type NonceQuery } from './nonce-file.ts'

export type ThreadRequest = NonceQuery[] | { endGeneration: string } | 'close'
export type ThreadAnswer = FileAnswer | { fault: string }

const file = new NonceFile(workerData as NonceFileOptions)

parentPort!.on('message', (request: ThreadRequest) => {
  if (request === 'close') {
    file.close()
    parentPort!.close()
  } else if ('endGeneration' in request) file.endGeneration(request.endGeneration)
  else parentPort!.postMessage(answer(request))
})

function answer(queries: NonceQuery[]): ThreadAnswer {
  try {
    return file.answer(queries)
  } catch (error) {
    return { fault: errorSummary(error) }
  }
}
