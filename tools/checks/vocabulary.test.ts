import { expect, test } from 'vitest'
import { readTexts } from './sources.ts'
import { forbiddenWords } from './vocabulary.ts'

test('code, configuration and documentation use standard terms', async () => {
  const texts = await readTexts()
  expect(texts.flatMap(forbiddenWords)).toEqual([])
  // The check has read these files.
  for (const path of ['README.md', 'docker-compose.yml', 'services/core/src/main.ts', 'docs/operations.md'])
    expect(texts.map(text => text.path)).toContain(path)
})

test.each([
  'const flight = takeOff(calls)',
  'LEDGER_LANES=2',
  'for (const lane of lanes) lane.close()',
  'npm run admin -- ledger seal',
  'const { sealedAt } = report',
  'openSealedSecret(ring)',
  'type SealPart = {}',
  'the memory of nonces was lost',
  'class KeyDirectory {',
  'function judge(leg: Leg)',
  "select * from audit where audit.act = 'key.create'",
  'error.data?.wire',
  "throw new Refusal('NOT_FOUND')",
  'running.hurry()',
  'a wall between modules',
])('a forbidden word is detected: %s', text => {
  expect(forbiddenWords({ path: 'planted.ts', text })).not.toEqual([])
})

test.each(['batches in flight', 'const { inFlight } = queue', 'the refusal of a request', 'calls that act for a key'])(
  'allowed text passes: %s',
  text => {
    expect(forbiddenWords({ path: 'allowed.ts', text })).toEqual([])
  },
)
