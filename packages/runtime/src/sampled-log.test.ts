import { expect, test } from 'vitest'
import type { Log } from './create-log.ts'
import { SampledLog } from './sampled-log.ts'

test('however many kinds there are, the lines are few, and their counts add up', () => {
  const lines: { count?: number }[] = []
  const log = { warn: (fields: object) => lines.push(fields) } as unknown as Log
  const sampled = new SampledLog(log)
  for (let round = 0; round < 3; round++)
    for (let kind = 0; kind < 1_000; kind++)
      sampled.write(`kind ${kind}`, { level: 'warn', fields: { kind }, message: 'it happened', summary: 'more of it' })
  sampled.flush()
  expect(lines).toHaveLength(2 * 101)
  expect(lines.reduce((sum, { count }) => sum + (count ?? 1), 0)).toBe(3_000)
})
