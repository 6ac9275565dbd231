import { createSecretKey, randomBytes } from 'node:crypto'
import { type Log, SampledLog } from '@workspace-wallet/runtime'
import { expect, test } from 'vitest'
import { classifyDatabaseError } from '../../database/errors.ts'
import { toTRPCError } from '../../trpc/errors.ts'
import { VerificationOutOfMemory, verifyInThread } from './thread.ts'

const verification = {
  databaseUrl: 'postgres://nobody@127.0.0.1:1/none',
  place: 0,
  chainKey: createSecretKey(randomBytes(32)),
  writers: null,
  workspaceId: null,
  checkpoint: null,
}

/** Less than the modules of the thread take. */
const tooSmallMb = 4

test('a verification that runs out of memory is an error of its own, and not an unavailable database', async () => {
  const error = await verifyInThread(verification, undefined, tooSmallMb)
    .next()
    .catch(error => error)
  expect(error).toBeInstanceOf(VerificationOutOfMemory)
  expect(classifyDatabaseError(error)).toBe('other')
  const logged: unknown[][] = []
  const log = new Proxy({}, { get: (_, level) => (_fields: object, message: string) => logged.push([level, message]) })
  const call = { path: 'ledger.verify', requestId: undefined }
  const sampledLog = new SampledLog(log as Log)
  const answer = toTRPCError(error, { log: log as Log, sampledLog }, call)
  expect(answer).toMatchObject({ code: 'INTERNAL_SERVER_ERROR', message: error.message })
  expect(logged).toEqual([['error', 'a verification ran out of memory']])
})
