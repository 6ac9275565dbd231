import { execFile } from 'node:child_process'
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { readManifest, root, writeManifest } from './manifest.ts'

/** Builds packages/client: a JavaScript file and a declaration file for each module, as `tsc` writes them. */
export async function buildClient(directory: string): Promise<void> {
  const source = join(root, 'packages/client')
  const project = join(source, 'tsconfig.build.json')
  await promisify(execFile)(join(root, 'node_modules/.bin/tsc'), ['--project', project, '--outDir', directory])
  await writeManifest(directory, await readManifest('client'), { entry: './index.js', dependencies: {}, node: '>=22' })
  await copyFile(join(source, 'README.md'), join(directory, 'README.md'))
}
