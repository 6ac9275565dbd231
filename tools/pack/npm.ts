import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** Packs a directory with `npm pack`. Returns the path of the tarball. */
export async function packDirectory(directory: string, out: string): Promise<string> {
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', out]
  const { stdout } = await promisify(execFile)('npm', args, { cwd: directory })
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }]
  return join(out, filename)
}
