/**
 * `npm run pack` builds the packages that other repositories install: docs/internal-client.md, packages/client/README.md,
 * packages/python/README.md.
 */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { anyText } from '../../cli/command-line/flags.ts'
import { createCommand, runProgram } from '../../cli/command-line/program.ts'
import { sayWithin } from '../../cli/processes/say.ts'
import { buildClient } from './client.ts'
import { buildCoreClient } from './core-client.ts'
import { buildPython } from './python.ts'

const builds: Record<string, (directory: string) => Promise<void>> = {
  '@workspace-wallet/client': buildClient,
  '@workspace-wallet/core-client': buildCoreClient,
}

async function pack(out: string): Promise<void> {
  const say = sayWithin('pack')
  await mkdir(out, { recursive: true })
  const stages = await mkdtemp(join(tmpdir(), 'pack-'))
  try {
    for (const [name, build] of Object.entries(builds)) {
      say(`building ${name}`)
      const stage = await mkdtemp(join(stages, 'package-'))
      await build(stage)
      console.log(await packDirectory(stage, out))
    }
    say('building workspace-wallet for Python')
    console.log(await buildPython(await mkdtemp(join(stages, 'package-')), out))
  } finally {
    await rm(stages, { recursive: true })
  }
}

/** Packs a directory with `npm pack`. Returns the path of the tarball. */
async function packDirectory(directory: string, out: string): Promise<string> {
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', out]
  const { stdout } = await promisify(execFile)('npm', args, { cwd: directory })
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }]
  return join(out, filename)
}

const program = createCommand({
  name: 'npm run pack --',
  help: 'build the packages for other repositories, and print the paths of their files',
  flags: {
    out: { value: 'DIR', help: 'directory for the files', default: 'dist', parse: anyText },
  },
  examples: ['', '--out /tmp/packages'],
  run: ({ out }) => pack(resolve(out)),
})

await runProgram(program, process.argv.slice(2))
