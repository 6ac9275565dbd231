import type { KekStatusStep } from '@workspace-wallet/contract'
import { expect, test } from 'vitest'
import { readKekStatus } from './keks.ts'

const step = (found: Partial<KekStatusStep>): KekStatusStep => ({
  active: 'k2',
  keks: [],
  modified: [],
  objects: 0,
  next: null,
  ...found,
})

/** Answers with these steps, each at the `next` of the one before. */
const answering = (...steps: KekStatusStep[]) => ({
  keks: {
    status: {
      query: async ({ after }: { after?: string | undefined }) =>
        steps[after === undefined ? 0 : steps.findIndex(({ next }) => next === after) + 1]!,
    },
  },
})

const rows = (count: number) => Array.from({ length: count }, (_, at) => ({ id: `key${at}`, workspaceId: 'w' }))

test('the steps are added up', async () => {
  const shown: number[] = []
  const core = answering(
    step({ keks: [{ kek: 'k2', secrets: 3, onRing: true }], modified: rows(70), objects: 100, next: 'a' }),
    step({ objects: 100, modified: rows(70), next: 'b' }),
    step({
      keks: [
        { kek: 'k1', secrets: 1, onRing: true },
        { kek: 'k2', secrets: 4, onRing: true },
      ],
      objects: 5,
    }),
  )
  const status = await readKekStatus(core, objects => shown.push(objects))
  expect(status).toEqual({
    active: 'k2',
    keks: [
      { kek: 'k1', secrets: 1, onRing: true },
      { kek: 'k2', secrets: 7, onRing: true },
    ],
    modified: { count: 140, rows: [...rows(70), ...rows(30)] },
  })
  expect(shown).toEqual([100, 200, 205])
})

test('cores with different key-encryption keys are not shown as one', async () => {
  const has = (onRing: boolean) => ({ keks: [{ kek: 'k2', secrets: 1, onRing }], objects: 1 })
  const { keks } = await readKekStatus(answering(step({ ...has(false), next: 'a' }), step(has(true))))
  expect(keks).toEqual([{ kek: 'k2', secrets: 2, onRing: false }])
  await expect(readKekStatus(answering(step({ next: 'a' }), step({ active: 'k3' })))).rejects.toThrow(
    'The first key-encryption key of one core is k2, that of another core is k3',
  )
})
