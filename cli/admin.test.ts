import { execFile, spawnSync } from 'node:child_process'
import { copyFile, mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { scopes } from '@workspace-wallet/contract'
import { describe, expect, test } from 'vitest'
import {
  adminToken,
  coreUrl,
  dataDir,
  fails,
  id,
  NODE_COMPILE_CACHE,
  PATH,
  root,
  run,
  sentence,
  system,
  throughCore,
} from '../test/setup/admin.ts'
import type { Ran } from '../test/setup/admin-command.ts'
import { startFaultProxy } from '../test/setup/fault-proxy.ts'
import { makeTempDir } from '../test/setup/temp.ts'
import { commands } from './admin/commands/all.ts'

describe('an invalid command line exits with 2 and one sentence', () => {
  const anyWallet = 'wal_01k9x5zq3sf4x9vtgkz3b8cdef'
  test.each([
    ['walet create', "Unknown command 'walet': did you mean wallet?"],
    [
      'banana',
      "Unknown command 'banana': the commands are workspace, member, key, wallet, statement, transfer, funding, receipt, hold, limit, ledger, event, webhook, search, audit, refusal, operator, session, system, kek and completion.",
    ],
    ['wallet crate', "Unknown command 'crate': did you mean create?"],
    ['wallet crea\u001bte', "Unknown command 'crea\uFFFDte': did you mean create?"],
    [
      'wallet --json',
      "Unknown option '--json': options follow a command (create, deposit, withdraw, freeze, unfreeze, close and search).",
    ],
    [
      '--json',
      "Unknown option '--json': options follow a command (workspace, member, key, wallet, statement, transfer, funding, receipt, hold, limit, ledger, event, webhook, search, audit, refusal, operator, session, system, kek and completion).",
    ],
    ['workspace delete --workspce wsp_1', "Unknown option '--workspce': did you mean --workspace?"],
    ['key list -v', "Unknown option '-v': the options are --workspace, --key, --json and --help."],
    [
      'wallet create --grace 24h',
      "Unknown option '--grace': the options are --workspace, --currency, --name, --biz-id, --json and --help.",
    ],
    ['workspace create', 'workspace create needs --name NAME (display name of the workspace).'],
    [
      'wallet create --name Main',
      'wallet create needs --workspace wsp_… (ID of the workspace) and --currency CODE (currency code, such as USD).',
    ],
    ['workspace create --name', '--name needs a value: display name of the workspace.'],
    ['workspace create --name --json', '--name needs a value: display name of the workspace.'],
    [
      'workspace create --name Acme Ltd',
      "Too many arguments for 'create'. Expected 0 arguments but got 1: Ltd. Remove the extra words, or quote a value that contains spaces.",
    ],
    ['workspace create --name Acme --name Corp', '--name is given twice: give it once.'],
    ['workspace create --name Acme --json --json', '--json is given twice: give it once.'],
    ['workspace create --name Acme --json=yes', "Unknown option '--json=yes': --json takes no value."],
    ['workspace delete', 'workspace delete needs --workspace wsp_… (ID of the workspace).'],
    [
      `workspace delete --workspace ${anyWallet}`,
      `--workspace must be an ID, which is wsp_ and 26 letters and digits, not "${anyWallet}".`,
    ],
  ])('%s', async (line, expected) => {
    expect(sentence(2, await run(line.split(' ')))).toBe(expected)
  })

  test('a blank name', async () => {
    expect(await fails(2, 'workspace create --name', ' ')).toContain('at least one of them visible')
  })
})

describe('a core that cannot be called', () => {
  const command = ['key', 'list']

  test('none was started here', async () => {
    expect(sentence(1, await run(command, {}))).toBe(
      `There is no ${join(dataDir, 'core.json')}: start the service with npm start, or set CORE_URL and CORE_TOKEN.`,
    )
  })

  test('nothing listens', async () => {
    // The system gives this port to no program.
    const url = 'http://127.0.0.1:2'
    const expected = `No core answers at ${url}: start the service with npm start, or correct CORE_URL.`
    expect(sentence(1, await run(command, { CORE_URL: url, CORE_TOKEN: adminToken }))).toBe(expected)
    expect(sentence(1, await run(['ledger', 'verify'], { CORE_URL: url, CORE_TOKEN: adminToken }))).toBe(expected)
  })

  test('the token is wrong, or has another role', async () => {
    const wrong = { CORE_URL: coreUrl, CORE_TOKEN: 'x'.repeat(43) }
    const unknown = `The core at ${coreUrl} rejects the token of CORE_TOKEN, which is unknown, expired or disabled: use a service token of the role admin, or that of an operator.`
    expect(sentence(1, await run(command, wrong))).toBe(unknown)
    expect(sentence(1, await run(['ledger', 'verify'], wrong))).toBe(unknown)
    const lesser = { CORE_URL: coreUrl, CORE_TOKEN: system.serviceToken }
    expect(sentence(1, await run(command, lesser))).toContain('does not have a role that may do this')
  })

  test('the URL is the public one of a gateway', async () => {
    const { url } = await system.startGateway()
    const gateway = { CORE_URL: url, CORE_TOKEN: adminToken }
    const expected = `The server at ${url} (HTTP 404) is not a core of this version: set CORE_URL to the URL of core, not to the public URL of a gateway.`
    expect(sentence(1, await run(command, gateway))).toBe(expected)
    expect(sentence(1, await run(['ledger', 'verify'], gateway))).toBe(expected)
  })

  test('only the URL or only the token is set', async () => {
    expect(sentence(1, await run(command, { CORE_URL: coreUrl }))).toContain('CORE_TOKEN is not')
    expect(sentence(1, await run(command, { CORE_TOKEN: adminToken }))).toContain('CORE_URL is not')
    expect(sentence(1, await run(command, { CORE_URL: 'localhost:8081', CORE_TOKEN: adminToken }))).toContain(
      'must be a URL',
    )
  })

  test('its database is unavailable', async () => {
    const path = await startFaultProxy(Number(new URL(system.database.serviceUrl).port))
    const DATABASE_URL = Object.assign(new URL(system.database.serviceUrl), { port: path.port }).href
    const other = await system.startCore({ DATABASE_URL })
    const environment = { CORE_URL: other.url, CORE_TOKEN: adminToken }
    const create = ['workspace', 'create', '--name', 'Acme']
    expect((await run(create, environment)).exitCode).toBe(0)
    path.cut()
    expect(sentence(1, await run(create, environment))).toMatch(/^Nothing was done, .* retry in \d+ s\. /)
  })
})

test('the core of npm start is found in DATA_DIR, and the environment overrides it', async () => {
  const embedded = join(dataDir, 'embedded')
  await mkdir(embedded)
  const file = join(embedded, 'core.json')
  const command = ['workspace', 'create', '--name', 'Acme', '--json']

  await writeFile(file, JSON.stringify({ coreUrl, adminToken }))
  expect((await run(command, { DATA_DIR: embedded })).exitCode).toBe(0)

  await writeFile(file, JSON.stringify({ coreUrl: 'http://127.0.0.1:1', adminToken: 'of another core' }))
  expect((await run(command, { DATA_DIR: embedded, ...throughCore })).exitCode).toBe(0)

  await writeFile(file, JSON.stringify({ coreUrl, adminToken: 'x'.repeat(43) }))
  expect(sentence(1, await run(command, { DATA_DIR: embedded }))).toContain(`the token of ${file}`)

  await writeFile(file, '{\n')
  expect(sentence(1, await run(command, { DATA_DIR: embedded }))).toContain('is damaged')

  await writeFile(file, '{}')
  expect(sentence(1, await run(command, { DATA_DIR: embedded }))).toContain('lacks coreUrl or adminToken')
})

describe('help', () => {
  test('of the program: every command, with examples', async () => {
    const shown = await Promise.all([run([]), run(['--help']), run(['-h']), run(['help'])])
    for (const { exitCode, stdout, stderr } of shown) {
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
      expect(stdout).toBe(shown[0]?.stdout)
    }
    const unwrapped = shown[0]?.stdout.replaceAll(/\s+/g, ' ')
    for (const { noun, verb, help } of commands) expect(unwrapped).toContain(` ${noun} ${verb} ${help} `)
    expect(shown[0]?.stdout).toContain('Examples:\n  npm run admin -- workspace create --name Acme\n')
  })

  test('of a noun: its verbs', async () => {
    const [bare, asked] = await Promise.all([run(['wallet']), run(['wallet', '--help'])])
    expect(bare).toEqual(asked)
    expect(asked).toMatchObject({ exitCode: 0, stderr: '' })
    expect(asked.stdout).toContain('wallet freeze')
    expect(asked.stdout).not.toContain('key rotate')
  })

  test('of a command: its flags and examples, without calling core', async () => {
    const [shown, asked] = await Promise.all([
      run(['key', 'create', '--owner', '--help'], {}),
      run(['help', 'key', 'create'], {}),
    ])
    expect(asked).toEqual(shown)
    const { exitCode, stdout } = shown
    expect(exitCode).toBe(0)
    for (const { noun, verb, flags } of commands.filter(each => each.noun === 'key' && each.verb === 'create'))
      for (const flag of [...Object.keys(flags), 'json', 'help'])
        expect(stdout, `${noun} ${verb}`).toMatch(new RegExp(`^  (-h, )?--${flag}\\b.*  \\S`, 'm'))
    expect(stdout).toContain('Examples:\n  npm run admin -- key create --workspace wsp_…')
    expect(stdout).toMatch(/^Required:\n {2}--workspace [\s\S]*\nOptions:\n {2}--ips /m)
    expect((await run(['audit', 'list', '--help'], {})).stdout).toMatch(/--limit <COUNT> .*\(default: 50\)/)
  })
})

describe('shell completion', () => {
  /** The candidates for the last word. */
  async function completed(...line: string[]): Promise<string[]> {
    const { exitCode, stdout, stderr } = await run(['complete', '--', ...line], {})
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    return stdout.split('\n').flatMap(row => (row ? [row.split('\t')[0]!] : []))
  }

  test('completes nouns, verbs, flags and the values of lists', async () => {
    expect(await completed('')).toEqual([...new Set(commands.map(({ noun }) => noun)), 'completion'])
    expect(await completed('wal')).toEqual(['wallet'])
    expect(await completed('wallet', '')).toEqual(
      commands.filter(({ noun }) => noun === 'wallet').map(({ verb }) => verb),
    )
    expect(await completed('wallet', 'create', '--')).toEqual([
      '--workspace',
      '--currency',
      '--name',
      '--biz-id',
      '--json',
      '--help',
    ])
    expect(await completed('hold', 'list', '--workspace', 'wsp_', '--status', 'R')).toEqual(['RELEASED'])
    expect(await completed('event', 'tail', '--f')).toEqual(['--follow'])
    expect(await completed('wallet', 'create', '--currency', 'USD')).toEqual(['USD', 'USDC', 'USDT'])
    expect(await completed('key', 'create', '--scopes', 'transfer:r')).toEqual(['transfer:read', 'transfer:reverse'])
    expect(await completed('key', 'create', '--scopes', 'transfer:read,')).toEqual(
      scopes.filter(scope => scope !== 'transfer:read').map(scope => `transfer:read,${scope}`),
    )
    expect(await completed('key', 'create', '--scopes=transfer:c')).toEqual(['--scopes=transfer:create'])
    expect(await completed('key', 'set-expiry', '--expires', '')).toEqual(['now', 'never'])
    expect(await completed('key', 'create', '--name', '')).toEqual([])
    expect(await completed('completion', '')).toEqual(['bash', 'zsh', 'fish'])
  })

  test('bash loads the script and completes words with colons', async () => {
    const { exitCode, stdout: loaded, stderr } = await run(['completion', 'bash'], {})
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    const type = (line: string) =>
      `COMP_LINE='${line}' COMP_POINT=${line.length}; _wallet_admin; echo "\${COMPREPLY[*]}"`
    const lines = ['wallet-admin wal', 'wallet-admin key create --scopes wallet:r', 'wallet-admin key list --name ']
    const bash = spawnSync('bash', {
      input: [loaded, ...lines.map(type), 'complete -p wallet-admin'].join('\n'),
      env: { ...process.env, PATH: `${join(root, 'cli')}:${process.env.PATH}` },
      encoding: 'utf8',
    })
    expect(bash).toMatchObject({ status: 0, stderr: '' })
    // bash itself adds "wallet:" before "read".
    expect(bash.stdout).toBe('wallet\nread\n\ncomplete -o default -F _wallet_admin wallet-admin\n')
  })

  test('has scripts for zsh and fish, and for no other shell', async () => {
    for (const shell of ['zsh', 'fish'])
      expect((await run(['completion', shell], {})).stdout).toContain('wallet-admin complete -- ')
    expect(sentence(2, await run(['completion', 'ksh'], {}))).toContain('Allowed choices are bash, zsh, fish.')
  })
})

test('wallet-admin finds the service of the checkout that it is linked from, in any directory, unless DATA_DIR is set', async () => {
  const checkout = await makeTempDir('checkout')
  const elsewhere = await makeTempDir('elsewhere')
  await mkdir(join(checkout, 'cli'))
  await copyFile(join(root, 'cli/wallet-admin'), join(checkout, 'cli/wallet-admin'))
  for (const name of ['admin.ts', 'node-version.cjs'])
    await symlink(join(root, 'cli', name), join(checkout, 'cli', name))
  // As npm link does.
  await symlink(join(checkout, 'cli/wallet-admin'), join(elsewhere, 'wallet-admin'))
  const walletAdmin = (environment: NodeJS.ProcessEnv) => {
    const { promise, resolve } = Promise.withResolvers<Ran>()
    const env = { PATH: `${join(process.execPath, '..')}:${PATH}`, NODE_COMPILE_CACHE, ...environment }
    const args = ['workspace', 'create', '--name', 'Linked', '--json']
    execFile(join(elsewhere, 'wallet-admin'), args, { cwd: elsewhere, env }, (error, stdout, stderr) =>
      resolve({ exitCode: error ? Number(error.code) : 0, stdout, stderr }),
    )
    return promise
  }
  expect(sentence(1, await walletAdmin({}))).toBe(
    `There is no ${join(checkout, '.data/core.json')}: start the service with npm start, or set CORE_URL and CORE_TOKEN.`,
  )
  for (const directory of [checkout, elsewhere]) {
    await mkdir(join(directory, '.data'))
    const connection = directory === checkout ? { coreUrl, adminToken } : { coreUrl: 'http://127.0.0.1:9' }
    await writeFile(join(directory, '.data/core.json'), JSON.stringify(connection))
  }
  const { exitCode, stdout, stderr } = await walletAdmin({})
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  expect(JSON.parse(stdout)).toEqual({ workspaceId: id('wsp') })
  expect(sentence(1, await walletAdmin({ DATA_DIR: '.data' }))).toContain('.data/core.json lacks coreUrl or adminToken')
})

test('npm run --silent prints the JSON only and passes the exit code on', async () => {
  const npm = (...args: string[]) => {
    const { promise, resolve } = Promise.withResolvers<Ran>()
    const env = { ...process.env, ...throughCore }
    execFile('npm', ['run', '--silent', 'admin', '--', ...args], { cwd: root, env }, (error, stdout, stderr) =>
      resolve({ exitCode: error ? Number(error.code) : 0, stdout, stderr }),
    )
    return promise
  }
  const made = await npm('workspace', 'create', '--name', 'A name with spaces', '--json')
  expect(JSON.parse(made.stdout)).toEqual({ workspaceId: id('wsp') })
  expect((await npm('workspace', 'create')).exitCode).toBe(2)
})
