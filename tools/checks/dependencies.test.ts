import { glob, readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { type Manifest, undeclaredImports } from './dependencies.ts'
import { readSources } from './sources.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

async function readManifests(): Promise<Manifest[]> {
  const { workspaces } = JSON.parse(await readFile(`${root}package.json`, 'utf8')) as { workspaces: string[] }
  const paths = await Array.fromAsync(
    glob(['package.json', ...workspaces.map(folder => `${folder}/package.json`)], { cwd: root }),
  )
  return Promise.all(
    paths.map(async path => ({ ...JSON.parse(await readFile(root + path, 'utf8')), folder: dirname(path) })),
  )
}

test('each package.json declares every package that the code of its folder imports', async () => {
  const [sources, manifests] = await Promise.all([readSources(), readManifests()])
  expect(undeclaredImports(sources, manifests)).toEqual([])
  // The check has read these files.
  expect(manifests.map(({ folder }) => folder)).toEqual(expect.arrayContaining(['.', 'packages/contract', 'gateway']))
})

const manifests: Manifest[] = [
  { folder: '.', name: 'root', dependencies: { pg: '1' }, devDependencies: { vitest: '1' } },
  {
    folder: 'packages/contract',
    name: '@workspace-wallet/contract',
    dependencies: { zod: '1' },
    devDependencies: { ajv: '1' },
  },
  { folder: 'packages/contract/pages', name: '@workspace-wallet/pages', dependencies: { react: '1' } },
]

test.each([
  [
    'of a package that another workspace declares',
    'packages/contract/src/money.ts',
    "import type { A } from '@trpc/server/http'",
  ],
  ['of a package that only the root declares', 'packages/contract/src/money.ts', "import pg from 'pg'"],
  ['of a package for development, by code', 'packages/contract/src/money.ts', "import Ajv from 'ajv'"],
  ['of a package of the root for development, by code', 'packages/contract/src/money.ts', "import 'vitest'"],
  ['by import()', 'packages/contract/src/money.ts', "const pg = await import('pg')"],
  ['of a package that the folder around it declares', 'packages/contract/pages/main.tsx', "import { z } from 'zod'"],
  ['by the root', 'cli/admin.ts', "import { z } from 'zod'"],
])('an undeclared import is detected: %s', (_, path, text) => {
  expect(undeclaredImports([{ path, text }], manifests)).toEqual([expect.stringContaining(path)])
})

test.each([
  ['packages/contract/src/money.ts', "import { z } from 'zod/mini'"],
  ['packages/contract/pages/main.tsx', "import { useState } from 'react'"],
  ['packages/contract/src/money.ts', "import { b } from './b.ts'"],
  ['packages/contract/src/money.ts', "import { open } from 'node:fs'"],
  ['packages/contract/src/money.test.ts', "import { test } from 'vitest'"],
  ['packages/contract/src/money.test.ts', "import Ajv from 'ajv'"],
  ['test/crash.test.ts', "import pg from 'pg'"],
])('a declared import passes: %s, %s', (path, text) => {
  expect(undeclaredImports([{ path, text }], manifests)).toEqual([])
})
