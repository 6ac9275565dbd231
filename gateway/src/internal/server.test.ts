import express from 'express'
import { afterEach, test, vi } from 'vitest'
import { expectUnreadClosed } from '../../../test/setup/unread-answers.ts'
import { createInternalServer } from './server.ts'

afterEach(() => vi.useRealTimers())

test('a client of the internal listener that does not read its answer is disconnected', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
  const app = express().get('/metrics', (_request, response) => void response.send(Buffer.alloc(16 * 2 ** 20)))
  const { cores, sampled } = {} as Parameters<typeof createInternalServer>[1]
  await expectUnreadClosed(createInternalServer(app, { cores, sampled }, 2 ** 26))
})
