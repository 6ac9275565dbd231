import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { root } from './manifest.ts'

/** Compiles a package with its tsconfig.build.json. */
export async function compile(name: string, outDir: string): Promise<void> {
  const project = join(root, 'packages', name, 'tsconfig.build.json')
  await promisify(execFile)(join(root, 'node_modules/.bin/tsc'), ['--project', project, '--outDir', outDir])
}
