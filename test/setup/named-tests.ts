import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'

/** Fails when there is no such test. @param named `path from the root: part of the test's title` */
export async function expectNamedTest(named: string): Promise<void> {
  const [, file, name] = /^(\S+\.test\.ts): (.*)$/.exec(named)!
  const text = await readFile(fileURLToPath(new URL(`../../${file}`, import.meta.url)), 'utf8')
  expect(text, named).toContain(name)
}
