import { mintId, uuidFromId } from '@workspace-wallet/contract'
import { expect, test } from 'vitest'
import type { Transfer } from '../chain/transfer.ts'
import type { Posting, PostingResult } from './posting.ts'
import { Lanes } from './shards.ts'

/** A lane whose batches stay under way until the test lets them go. */
function heldLane(queueLimit = 100) {
  const batches: { names: string[]; finish: () => void }[] = []
  const lanes = new Lanes({
    lanes: 1,
    queueLimit,
    post: postings =>
      new Promise(resolve => {
        const results = postings.map(
          (posting): PostingResult => ({ kind: 'posted', transfer: posting as unknown as Transfer }),
        )
        batches.push({ names: postings.map(({ remark }) => remark!), finish: () => resolve(results) })
      }),
  })
  return { lanes, batches }
}

function posting(workspaceId: string, remark: string, budgetMs = 10_000): Posting {
  return {
    type: 'TRANSFER',
    workspaceId,
    transferId: uuidFromId('transfer', mintId('transfer'))!,
    bizId: null,
    sourceWalletId: 'source',
    targetWalletId: 'target',
    amount: '1',
    currency: 'USD',
    remark,
    actor: 'test',
    requestId: 'test',
    clientAddress: null,
    mayBePosted: false,
    deadlineMs: performance.now() + budgetMs,
  }
}

/** Until the lane has begun what it could begin. */
const turn = () => new Promise(setImmediate).then(() => new Promise(setImmediate))

test('what comes while a batch is under way is the next one, with equal shares for the workspaces that wait', async () => {
  const { lanes, batches } = heldLane(1_000)
  const first = lanes.post(posting('a', 'first'))
  await turn()
  const greedy = Array.from({ length: 400 }, (_, at) => lanes.post(posting('a', `greedy ${at}`)))
  const modest = lanes.post(posting('b', 'modest'))
  expect(lanes.depth).toEqual({ waiting: 401, posting: 1 })
  batches[0]!.finish()
  await first
  await turn()
  expect(batches[0]!.names).toEqual(['first'])
  expect(batches[1]!.names).toHaveLength(256)
  expect(batches[1]!.names).toContain('modest')
  batches[1]!.finish()
  await modest
  await turn()
  batches[2]!.finish()
  await Promise.all(greedy)
  await lanes.close()
  expect(lanes.depth).toEqual({ waiting: 0, posting: 0 })
})

test('one workspace fills half of a queue at most', async () => {
  const { lanes, batches } = heldLane(4)
  const taken = [lanes.post(posting('a', 'under way'))]
  await turn()
  taken.push(lanes.post(posting('a', '1')), lanes.post(posting('a', '2')))
  await expect(lanes.post(posting('a', '3'))).rejects.toMatchObject({ code: 'S002' })
  taken.push(lanes.post(posting('b', '4')), lanes.post(posting('c', '5')))
  await expect(lanes.post(posting('d', '6'))).rejects.toMatchObject({ code: 'S002' })
  batches[0]!.finish()
  await turn()
  batches[1]!.finish()
  await expect(Promise.all(taken)).resolves.toHaveLength(5)
})

test('behind a batch that is stuck, whoever has waited long enough is told that nothing was done', async () => {
  const { lanes, batches } = heldLane()
  const stuck = lanes.post(posting('a', 'stuck'))
  await turn()
  const patient = lanes.post(posting('a', 'patient'))
  await expect(lanes.post(posting('a', 'hurried', 1))).rejects.toMatchObject({ code: 'S002' })
  expect(lanes.depth).toEqual({ waiting: 1, posting: 1 })
  batches[0]!.finish()
  await stuck
  await turn()
  expect(batches[1]!.names).toEqual(['patient'])
  batches[1]!.finish()
  await patient
})
