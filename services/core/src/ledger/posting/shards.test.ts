import { mintId, uuidFromId } from '@workspace-wallet/contract'
import { expect, test } from 'vitest'
import type { Transfer } from '../chain/transfer.ts'
import type { Posting, PostingResult } from './posting.ts'
import { Shards } from './shards.ts'

/** A shard whose batches stay under way until the test lets them go. */
function heldShard(queueLimit = 100) {
  const batches: { names: string[]; finish: () => void }[] = []
  const shards = new Shards({
    shards: 1,
    queueLimit,
    post: postings =>
      new Promise(resolve => {
        const results = postings.map(
          (posting): PostingResult => ({ kind: 'posted', transfer: posting as unknown as Transfer }),
        )
        batches.push({ names: postings.map(({ remark }) => remark!), finish: () => resolve(results) })
      }),
  })
  return { shards, batches }
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

/** Until the shard has begun what it could begin. */
const turn = () => new Promise(setImmediate).then(() => new Promise(setImmediate))

test('what comes while a batch is under way is the next one, with equal shares for the workspaces that wait', async () => {
  const { shards, batches } = heldShard(1_000)
  const first = shards.post(posting('a', 'first'))
  await turn()
  const greedy = Array.from({ length: 400 }, (_, at) => shards.post(posting('a', `greedy ${at}`)))
  const modest = shards.post(posting('b', 'modest'))
  expect(shards.depth).toEqual({ waiting: 401, posting: 1 })
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
  await shards.close()
  expect(shards.depth).toEqual({ waiting: 0, posting: 0 })
})

test('one workspace fills half of a queue at most', async () => {
  const { shards, batches } = heldShard(4)
  const taken = [shards.post(posting('a', 'under way'))]
  await turn()
  taken.push(shards.post(posting('a', '1')), shards.post(posting('a', '2')))
  await expect(shards.post(posting('a', '3'))).rejects.toMatchObject({ code: 'S002' })
  taken.push(shards.post(posting('b', '4')), shards.post(posting('c', '5')))
  await expect(shards.post(posting('d', '6'))).rejects.toMatchObject({ code: 'S002' })
  batches[0]!.finish()
  await turn()
  batches[1]!.finish()
  await expect(Promise.all(taken)).resolves.toHaveLength(5)
})

test('behind a batch that is stuck, whoever has waited long enough is told that nothing was done', async () => {
  const { shards, batches } = heldShard()
  const stuck = shards.post(posting('a', 'stuck'))
  await turn()
  const patient = shards.post(posting('a', 'patient'))
  await expect(shards.post(posting('a', 'expiring', 1))).rejects.toMatchObject({ code: 'S002' })
  expect(shards.depth).toEqual({ waiting: 1, posting: 1 })
  batches[0]!.finish()
  await stuck
  await turn()
  expect(batches[1]!.names).toEqual(['patient'])
  batches[1]!.finish()
  await patient
})
