import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findPrograms } from '../cli/processes/programs.ts'
import { createMarketplace } from '../cli/start/marketplace.ts'
import { guides, index, namesSetBy, type Page, readme, shop, stepsOf } from './guides/pages.ts'
import { Reader } from './guides/reader.ts'
import { differences } from './guides/transcript.ts'
import { installGenerators } from './setup/generators.ts'
import { Shell, type ShellName } from './setup/shell.ts'
import { ShownOutputs } from './setup/shown-output.ts'
import { type System, startSystem } from './setup/system.ts'

/**
 * Runs the commands of the README, the guides, docs/signing.md and the shop on demo workspaces like that of `npm start`: each
 * page in a new bash on a new demo, and all pages one after the other in one zsh on one demo. So both shells run every command.
 *
 * In a new shell, what the page shows is compared, and everything that the commands print with the transcript of the page
 * (guides/transcripts), also what the page leaves out. After other pages, numbers such as balances differ: guides/in-sequence.txt
 * has the lines that differ from the transcript. After a change, write first the one, then the other, by running twice:
 * npx vitest run test/guides.test.ts --update
 */

const shells = ['bash', 'zsh'] as const
const root = join(import.meta.dirname, '..')
const transcripts = join(import.meta.dirname, 'guides/transcripts')
const inSequence = join(import.meta.dirname, 'guides/in-sequence.txt')

/** docs/guides/events.md: events.txt */
function fileOf({ path }: Page): string {
  return path === shop.path ? 'shop.txt' : `${basename(path, '.md')}.txt`
}

let system: System
beforeAll(async () => {
  const installed = installGenerators()
  await findPrograms(['zsh', 'python3', 'curl', 'openssl'].map(name => ({ names: [name], aptPackage: name })))
  system = await startSystem({ gatewayEnvironment: { DOCS: 'on' } })
  await system.startCourier()
  // `npm start` creates it as well, and the README shows the counts of both.
  await createMarketplace(system.coreUrl, system)
  await installed
})
afterAll(() => system.stop())

async function withReader(creating: Promise<Reader>, use: (reader: Reader) => Promise<void>): Promise<void> {
  const reader = await creating
  try {
    await use(reader)
  } finally {
    reader.end()
  }
}

// First, while there is one workspace, whose counts the page shows. When the second shell repeats the commands, nothing moves.
test.each(shells)('README.md: the commands print what the page shows, in %s', async shell => {
  await withReader(Reader.create(system, shell, system), async reader => {
    const transcript = await reader.follow(readme, new ShownOutputs())
    await expect(transcript).toMatchFileSnapshot(join(transcripts, 'README.txt'))
  })
})

describe.concurrent('in a new shell on a new demo', () => {
  test.for([...guides, shop])('$title: the commands print what the page shows, in bash', async (page, { expect }) => {
    await withReader(Reader.create(system, 'bash'), async reader => {
      await reader.follow(index, new ShownOutputs())
      const transcript = await reader.follow(page, new ShownOutputs())
      await expect(transcript).toMatchFileSnapshot(join(transcripts, fileOf(page)))
      if (page.path.endsWith('/events.md')) await expectSameBalances(reader)
    })
  })
})

/** The program of the guide on events has counted everything that moves money. */
async function expectSameBalances({ client, directory }: Reader): Promise<void> {
  const { content } = await client.events.read(0)
  for (const type of ['transfer.completed', 'wallet.deposited', 'wallet.withdrawn'])
    expect(content.map(event => event.type)).toContain(type)
  const wallets = await Array.fromAsync(client.wallets.listAll())
  const { balances } = JSON.parse(await readFile(join(directory, '.data/copy.json'), 'utf8'))
  expect(balances).toEqual(Object.fromEntries(wallets.map(({ walletId, balance }) => [walletId, balance])))
}

/** As in the guide. */
const copyEvents =
  'BASE_URL=$(demo baseUrl) API_KEY=$(demo apiKey) API_SECRET=$(demo apiSecret) node .data/copy.ts > .data/copy.txt'

// A command that hangs fails by itself.
describe.concurrent('one after the other in one shell', { timeout: 600_000 }, () => {
  test('all pages can be followed, the copy of the events has every balance, and no webhook delivers, in zsh', async ({
    expect,
  }) => {
    await withReader(Reader.create(system, 'zsh'), async reader => {
      await reader.follow(index, new ShownOutputs())
      let changed = ''
      for (const page of [...guides, shop]) {
        const alone = await readFile(join(transcripts, fileOf(page)), 'utf8')
        changed += `${page.path}\n${differences(await reader.follow(page), alone)}\n`
      }
      await expect(changed).toMatchFileSnapshot(inSequence)
      expect(await reader.run(copyEvents)).toBe('')
      await expectSameBalances(reader)
      expect((await reader.webhooks()).filter(({ status }) => status === 'ACTIVE')).toEqual([])
    })
  })
})

test('there are no other transcripts', async () => {
  expect((await readdir(transcripts)).sort()).toEqual([readme, ...guides, shop].map(fileOf).sort())
})

test('every guide is run, and its code is in blocks that are run', () => {
  expect(guides.length).toBeGreaterThan(10)
  for (const page of guides) {
    expect(stepsOf(page).length, page.path).toBeGreaterThan(1)
    const blocks = [...page.text.matchAll(/^```(.*)\n(.*)\n/gm)].filter((_, at) => at % 2 === 0)
    for (const [, language, line] of blocks)
      expect(`${page.path}: ${language} ${line}`).toMatch(
        /: (console \$ |ts \/\/ \S+\.ts$|js \/\/ \S+\.js$|python # \S+\.py$)/,
      )
  }
})

describe.each(shells)('in %s', name => {
  /** Prints the names of all variables that a new shell has. */
  const variablesOf: Record<ShellName, string> = { bash: 'compgen -v', zsh: `typeset + | sed 's/.* //'` }
  const commands = [readme, index, ...guides, shop].flatMap(stepsOf).map(({ command }) => command)
  const set = namesSetBy(commands)

  async function inNewShell(command: string): Promise<string[]> {
    const shell = new Shell(name, { cwd: root, env: { PATH: process.env.PATH, HOME: root } })
    try {
      return (await shell.run(command)).split('\n').filter(line => line !== '')
    } finally {
      shell.end()
    }
  }

  test('no page changes a variable that the shell uses, except the path of commands', async () => {
    const known = await inNewShell(variablesOf[name])
    expect(known).toContain('IFS')
    expect(set.variables).toEqual(expect.arrayContaining(['MAIN', 'target', 'n', 'API_KEY']))
    expect(set.variables.filter(variable => known.includes(variable))).toEqual(['PATH'])
  })

  test('no page defines a function with the name of a command', async () => {
    expect(set.functions).toEqual(expect.arrayContaining(['demo', 'send', 'put', 'get']))
    expect(await inNewShell(set.functions.map(each => `command -v ${each}`).join('; '))).toEqual([])
  })
})
