import { execFile } from 'node:child_process'
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findPrograms } from '../../cli/processes/programs.ts'
import { root } from './manifest.ts'

const execute = promisify(execFile)

/** Builds packages/python as a wheel, with setuptools. Returns the path of the wheel. */
export async function buildPython(stage: string, out: string): Promise<string> {
  // setuptools writes into the directory that it builds.
  for (const name of ['pyproject.toml', 'README.md', 'src'])
    await cp(join(root, 'packages/python', name), join(stage, name), {
      recursive: true,
      filter: path => !path.includes('__pycache__'),
    })
  const program = 'import sys; from setuptools import build_meta; print(build_meta.build_wheel(sys.argv[1]))'
  const python = await findPython('import setuptools, wheel', ['python3-setuptools', 'python3-wheel'])
  const { stdout } = await execute(python, ['-c', program, out], { cwd: stage })
  return join(out, stdout.trim().split('\n').at(-1)!)
}

/**
 * A Python that can run a program, such as one that imports what it needs.
 *
 * @param aptPackages the Debian packages of what it imports
 */
export async function findPython(program: string, aptPackages: string[]): Promise<string> {
  const isSuitable = (python: string) =>
    execute(python, ['-c', program]).then(
      () => true,
      () => false,
    )
  const [python] = await findPrograms(aptPackages.map(aptPackage => ({ names: ['python3'], aptPackage, isSuitable })))
  return python!
}
