import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { commands } from './all.ts'

test('the commands of each noun are tested in one file', () => {
  const files = globSync('*.test.ts', { cwd: import.meta.dirname })
  const calls = files.flatMap(file =>
    [...readFileSync(join(import.meta.dirname, file), 'utf8').matchAll(/^testEveryCommandOf\((.*?)\)$/gms)].flatMap(
      ([, nouns]) => [...nouns!.matchAll(/'(\w+)'/g)].map(([, noun]) => noun!),
    ),
  )
  expect(calls.toSorted()).toEqual([...new Set(commands.map(({ noun }) => noun))].toSorted())
})
