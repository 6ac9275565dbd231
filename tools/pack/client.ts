import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readManifest, root, writeManifest } from './manifest.ts'
import { compile } from './tsc.ts'

/** Builds packages/client: a JavaScript file and a declaration file for each module, as `tsc` writes them. */
export async function buildClient(directory: string): Promise<void> {
  await compile('client', directory)
  await writeManifest(directory, await readManifest('client'), { entry: './index.js', dependencies: {}, node: '>=22' })
  await copyFile(join(root, 'packages/client/README.md'), join(directory, 'README.md'))
}
