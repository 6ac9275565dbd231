/** The thread that owns the nonce file: a disk that is slow or hangs holds nobody up but who asks for a nonce. */
import { parentPort, workerData } from 'node:worker_threads'
import { errorSummary } from '../../observability/availability.ts'
import { type FileAnswers, NonceFile, type NonceFileOptions, type Question } from './nonce-file.ts'

export type ThreadAnswer = FileAnswers | { fault: string }

const file = new NonceFile(workerData as NonceFileOptions)

parentPort!.on('message', (questions: Question[] | 'close') => {
  if (questions === 'close') {
    file.close()
    parentPort!.close()
  } else parentPort!.postMessage(answer(questions))
})

function answer(questions: Question[]): ThreadAnswer {
  try {
    return file.answer(questions)
  } catch (error) {
    return { fault: errorSummary(error) }
  }
}
