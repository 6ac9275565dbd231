/** The worker thread of the nonce file. A slow disk delays only requests that need a nonce. */

import { parentPort, workerData } from 'node:worker_threads'
import { errorSummary } from '@workspace-wallet/runtime'
import { type FileAnswer, NonceFile, type NonceFileOptions, type NonceQuery } from './nonce-file.ts'

export type ThreadAnswer = FileAnswer | { fault: string }

const file = new NonceFile(workerData as NonceFileOptions)

parentPort!.on('message', (queries: NonceQuery[] | 'close') => {
  if (queries === 'close') {
    file.close()
    parentPort!.close()
  } else parentPort!.postMessage(answer(queries))
})

function answer(queries: NonceQuery[]): ThreadAnswer {
  try {
    return file.answer(queries)
  } catch (error) {
    return { fault: errorSummary(error) }
  }
}
