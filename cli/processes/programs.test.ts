import { execFile } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeEach, expect, test } from 'vitest'
import { makeTempDir } from '../../test/setup/temp.ts'
import { isRoot } from './unprivileged.ts'

const module = new URL('programs.ts', import.meta.url).href

/** An apt-get that creates an executable for each package. It fails while another one runs, and the first time, as the
 * real one does while another program holds the lock of the lists. */
const aptGet = `#!/bin/sh
cd "$TEST_DIR"
if mkdir first 2>/dev/null; then echo 'E: Could not get lock /var/lib/apt/lists/lock.' >&2; exit 100; fi
mkdir running || { echo overlap >> log; exit 1; }
sleep 0.2
for word; do
  case $word in
    update | install) echo "$word" >> log ;;
    tool-*) echo "$word" >> log; printf '#!/bin/sh\\n' > "bin/$word"; chmod +x "bin/$word" ;;
  esac
done
rmdir running
`

let directory: string

beforeEach(async () => {
  directory = await makeTempDir('programs')
  await mkdir(join(directory, 'bin'))
})

async function find(tools: string[], path: string): Promise<{ found: string[]; stderr: string }> {
  const wanted = tools.map(tool => ({ names: [tool], aptPackage: tool }))
  const script = `import { findPrograms } from '${module}'
    console.log(JSON.stringify(await findPrograms(${JSON.stringify(wanted)})))`
  const env = { PATH: path, TEST_DIR: directory }
  const args = ['--input-type=module', '--eval', script]
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { env })
  return { found: JSON.parse(stdout), stderr }
}

test('processes that need programs at the same time install each package once, one after the other', async () => {
  await writeFile(join(directory, 'bin', 'apt-get'), aptGet, { mode: 0o755 })
  const needs = [['tool-a', 'tool-b'], ['tool-b', 'tool-c'], ['tool-a']]
  const finds = needs.map(tools => find(tools, `${join(directory, 'bin')}:${process.env.PATH}`))
  if (!isRoot()) {
    const reasons = (await Promise.allSettled(finds)).map(result => result.status === 'rejected' && result.reason)
    for (const { message } of reasons) expect(message).toMatch(/tool-\w is not installed: install it/)
    return
  }
  const results = await Promise.all(finds)
  expect(results.map(({ found }) => found)).toEqual(needs.map(tools => tools.map(tool => join(directory, 'bin', tool))))
  const log = (await readFile(join(directory, 'log'), 'utf8')).trim().split('\n')
  expect(log).not.toContain('overlap')
  expect(log.filter(line => line.startsWith('tool-')).sort()).toEqual(['tool-a', 'tool-b', 'tool-c'])
  expect(results.map(({ stderr }) => stderr).join('')).toMatch(
    /^Installing tool-\w.* …\nInstalled tool-\w.* in \d+ s\.$/m,
  )
})

test('without apt, the error names each missing program and its package', async () => {
  await expect(find(['tool-a', 'tool-b'], join(directory, 'bin'))).rejects.toThrow(
    'tool-a is not installed: install it, on Debian with "apt-get install tool-a" as root. ' +
      'tool-b is not installed: install it, on Debian with "apt-get install tool-b" as root.',
  )
})
